"""Greedy answers with a drafter against plain ones, over all prompts of tests/prompts.py, as a table.

    python -m tests.compare_modes DRAFTER.gguf [DRAFTER.gguf …] [--model TARGET.gguf] [--tokens 200] [--drafts 3,7]

Exit status 1 if any first difference is not a near-tie.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import closing

from engine.drafter import Drafter
from engine.drafter_weights import SharedTensors
from engine.embedded import embedded_model
from engine.gguf_file import read_header
from engine.graph import Device
from engine.lossless import compare
from engine.target import Target
from engine.vocabulary import Message
from tests.prompts import PROMPTS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drafters", nargs="+")
    parser.add_argument("--model")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--drafts", default="3,7")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    bad = 0
    with (
        closing(Target(read_header(args.model or str(embedded_model())), context=1024, threads=args.threads)) as target,
        Device(target.device_handle, args.threads) as device,
    ):
        shared = SharedTensors(target.embeddings, target.head, target.file_name)
        for path in args.drafters:
            with closing(Drafter(path, device, context=target.context, shared=shared)) as drafter:
                for drafts in map(int, args.drafts.split(",")):
                    print(f"\n{drafter.file_name}, {drafts} drafts per cycle, {args.tokens} tokens")
                    print("kind          prompts tokens tokens/pass  near-ties  other differences")
                    for kind, prompts in PROMPTS.items():
                        tokens = passes = ties = others = 0
                        for prompt in prompts:
                            ids = target.vocabulary.render([Message("user", prompt)])
                            result = compare(target, drafter, ids, args.tokens, drafts)
                            tokens += result.tokens
                            passes += result.passes
                            for difference in result.differences:
                                ties += difference.near_tie
                                others += not difference.near_tie
                                print(f"    {difference} in {prompt[:40]!r}")
                        bad += others
                        per_pass = tokens / max(1, passes)
                        print(f"{kind:13} {len(prompts):7} {tokens:6} {per_pass:11.2f} {ties:10} {others:18}")
                        sys.stdout.flush()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
