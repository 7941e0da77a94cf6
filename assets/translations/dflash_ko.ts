<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="ko">
<context>
    <name>Answer</name>
    <message>
        <source>Code</source>
        <translation>코드</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>복사</translation>
    </message>
    <message>
        <source>Copy this code</source>
        <translation>이 코드 복사</translation>
    </message>
    <message>
        <source>text</source>
        <translation>텍스트</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>복사했습니다</translation>
    </message>
    <message>
        <source>Thoughts</source>
        <translation>생각 과정</translation>
    </message>
    <message>
        <source>Thinking…</source>
        <translation>생각하는 중…</translation>
    </message>
    <message>
        <source>Thought</source>
        <translation>생각 과정</translation>
    </message>
    <message>
        <source>Thought for {seconds} s</source>
        <translation>{seconds}초 동안 생각함</translation>
    </message>
    <message>
        <source>Answer</source>
        <translation>답변</translation>
    </message>
    <message>
        <source>Copy this answer</source>
        <translation>이 답변 복사</translation>
    </message>
    <message>
        <source>Ask again</source>
        <translation>다시 묻기</translation>
    </message>
    <message>
        <source>Ask this question again</source>
        <translation>이 질문을 다시 묻기</translation>
    </message>
    <message>
        <source>Continue</source>
        <translation>이어 쓰기</translation>
    </message>
    <message>
        <source>Let the model go on with this answer</source>
        <translation>모델이 이 답변을 이어 쓰게 하기</translation>
    </message>
    <message>
        <source>Show the version before</source>
        <translation>이전 버전 보기</translation>
    </message>
    <message>
        <source>Show the version after</source>
        <translation>다음 버전 보기</translation>
    </message>
    <message>
        <source>Version {place} of {count}</source>
        <translation>{count}개 중 {place}번째 버전</translation>
    </message>
    <message>
        <source>acceptance length {length}</source>
        <translation>수락 길이 {length}</translation>
    </message>
</context>
<context>
    <name>Banner</name>
    <message>
        <source>Try again</source>
        <translation>다시 시도</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>닫기</translation>
    </message>
    <message>
        <source>Close this message</source>
        <translation>이 메시지 닫기</translation>
    </message>
</context>
<context>
    <name>Chats</name>
    <message>
        <source>About your conversations</source>
        <translation>대화 저장 알림</translation>
    </message>
</context>
<context>
    <name>Compare</name>
    <message>
        <source>Compare the modes</source>
        <translation>모드 비교</translation>
    </message>
    <message>
        <source>The same question in the three modes, one after another, each in a fresh engine process. What the model says is the same; what differs is how long it takes.</source>
        <translation>같은 질문을 세 모드에서 차례로, 매번 새 엔진 프로세스로 실행합니다. 모델의 답은 같고 걸리는 시간만 다릅니다.</translation>
    </message>
    <message>
        <source>Back to the chat</source>
        <translation>대화로 돌아가기</translation>
    </message>
    <message>
        <source>A question of your own</source>
        <translation>직접 질문하기</translation>
    </message>
    <message>
        <source>Question to compare</source>
        <translation>비교할 질문</translation>
    </message>
    <message>
        <source>Longest answer, in tokens</source>
        <translation>가장 긴 답변(토큰)</translation>
    </message>
    <message>
        <source>Longest answer</source>
        <translation>가장 긴 답변</translation>
    </message>
    <message>
        <source>Compare</source>
        <translation>비교</translation>
    </message>
    <message>
        <source>Quick suite</source>
        <translation>간단한 측정</translation>
    </message>
    <message>
        <source>Fourteen questions of seven kinds; takes a few minutes with a small model.</source>
        <translation>일곱 종류의 질문 열네 개입니다. 작은 모델이면 몇 분 걸립니다.</translation>
    </message>
    <message>
        <source>Whole suite</source>
        <translation>전체 측정</translation>
    </message>
    <message>
        <source>All questions, one, two and four at a time, three times each. Takes long.</source>
        <translation>모든 질문을 한 번에 하나, 둘, 넷씩 세 번 되풀이합니다. 오래 걸립니다.</translation>
    </message>
    <message>
        <source>How far the comparison has come</source>
        <translation>비교 진행률</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>중지</translation>
    </message>
    <message>
        <source>Answer: {mode}</source>
        <translation>답변: {mode}</translation>
    </message>
    <message>
        <source>All answers are the same, word for word.</source>
        <translation>모든 답변이 한 글자도 다르지 않습니다.</translation>
    </message>
    <message>
        <source>The answers differ somewhere; how far that is rounding is said below.</source>
        <translation>답변이 어딘가에서 다릅니다. 그것이 얼마나 반올림 때문인지는 아래에 있습니다.</translation>
    </message>
    <message>
        <source>Open the report</source>
        <translation>보고서 열기</translation>
    </message>
    <message>
        <source>Stopping; what was measured is kept.</source>
        <translation>멈추는 중입니다. 측정한 것은 남습니다.</translation>
    </message>
    <message>
        <source>Getting ready</source>
        <translation>준비하는 중</translation>
    </message>
    <message>
        <source>Wait until the chat&apos;s answer is finished.</source>
        <translation>대화의 답변이 끝날 때까지 기다리십시오.</translation>
    </message>
    <message>
        <source>waiting</source>
        <translation>대기 중</translation>
    </message>
    <message>
        <source>loading</source>
        <translation>불러오는 중</translation>
    </message>
    <message>
        <source>writing</source>
        <translation>쓰는 중</translation>
    </message>
    <message>
        <source>done</source>
        <translation>완료</translation>
    </message>
    <message>
        <source>not possible</source>
        <translation>불가능</translation>
    </message>
    <message>
        <source>{times} × {mode}</source>
        <translation>{mode}의 {times}배</translation>
    </message>
    <message>
        <source>The comparison met an error that is not known ({reason}); please report it.</source>
        <translation>비교하다 알 수 없는 오류가 났습니다({reason}). 알려 주시기 바랍니다.</translation>
    </message>
</context>
<context>
    <name>Composer</name>
    <message>
        <source>Send</source>
        <translation>보내기</translation>
    </message>
    <message>
        <source>Send (Enter)</source>
        <translation>보내기(Enter)</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>중지</translation>
    </message>
    <message>
        <source>Stop the answer (Esc)</source>
        <translation>답변 중지(Esc)</translation>
    </message>
    <message>
        <source>Add text files</source>
        <translation>텍스트 파일 추가</translation>
    </message>
    <message>
        <source>Add text files (Ctrl+O), or drop them here</source>
        <translation>텍스트 파일 추가(Ctrl+O). 여기로 끌어다 놓아도 됩니다</translation>
    </message>
    <message>
        <source>Progress</source>
        <translation>진행률</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>취소</translation>
    </message>
    <message>
        <source>Cancel loading</source>
        <translation>불러오기 취소</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>컨텍스트</translation>
    </message>
    <message>
        <source>{used} of {size} tokens, nearly full</source>
        <translation>{size}토큰 중 {used}토큰, 거의 찼습니다</translation>
    </message>
    <message>
        <source>{used} of {size} tokens</source>
        <translation>{size}토큰 중 {used}토큰</translation>
    </message>
    <message>
        <source>Add text files to the prompt</source>
        <translation>프롬프트에 텍스트 파일 추가</translation>
    </message>
</context>
<context>
    <name>Conversation</name>
    <message>
        <source>Stopped at the token limit.</source>
        <translation>토큰 한도에서 멈췄습니다.</translation>
    </message>
    <message>
        <source>Stopped because the context is full.</source>
        <translation>컨텍스트가 가득 차서 멈췄습니다.</translation>
    </message>
    <message>
        <source>Stopped.</source>
        <translation>중지했습니다.</translation>
    </message>
    <message>
        <source>Not answered: it was cancelled while it waited.</source>
        <translation>대기하던 중에 취소되어 답변하지 않았습니다.</translation>
    </message>
    <message>
        <source>The engine stopped here. The text so far is kept.</source>
        <translation>엔진이 여기서 멈췄습니다. 지금까지의 글은 남아 있습니다.</translation>
    </message>
    <message>
        <source>The program ended here. The text so far is kept.</source>
        <translation>프로그램이 여기서 끝났습니다. 지금까지의 글은 남아 있습니다.</translation>
    </message>
    <message>
        <source>Conversation</source>
        <translation>대화</translation>
    </message>
    <message>
        <source>Go to the newest text</source>
        <translation>최근 글로 이동</translation>
    </message>
</context>
<context>
    <name>Convert</name>
    <message>
        <source>Convert a drafter</source>
        <translation>드래프터 변환</translation>
    </message>
    <message>
        <source>The drafter&apos;s model</source>
        <translation>드래프터의 모델</translation>
    </message>
    <message>
        <source>As they are stored</source>
        <translation>저장된 그대로</translation>
    </message>
    <message>
        <source>Weights</source>
        <translation>가중치</translation>
    </message>
    <message>
        <source>Convert</source>
        <translation>변환</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>취소</translation>
    </message>
    <message>
        <source>The drafter becomes a GGUF file in your folder of drafters, with the vocabulary of its model.</source>
        <translation>드래프터를 그 모델의 어휘와 함께 GGUF 파일로 바꾸어 드래프터 폴더에 넣습니다.</translation>
    </message>
    <message>
        <source>The model that it drafts for</source>
        <translation>이 드래프터가 쓰이는 모델</translation>
    </message>
    <message>
        <source>Its weights</source>
        <translation>가중치 형식</translation>
    </message>
</context>
<context>
    <name>Downloads</name>
    <message>
        <source>Downloads</source>
        <translation>다운로드</translation>
    </message>
    <message>
        <source>Progress of the download</source>
        <translation>다운로드 진행률</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>일시 중지</translation>
    </message>
    <message>
        <source>Go on</source>
        <translation>계속</translation>
    </message>
    <message>
        <source>Open its page</source>
        <translation>페이지 열기</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>취소</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>닫기</translation>
    </message>
    <message>
        <source>Progress of the conversion</source>
        <translation>변환 진행률</translation>
    </message>
    <message>
        <source>Converted.</source>
        <translation>변환했습니다.</translation>
    </message>
    <message>
        <source>Downloading its weights, {percent} %</source>
        <translation>가중치를 내려받는 중, {percent}%</translation>
    </message>
    <message>
        <source>Converting to GGUF, {percent} %</source>
        <translation>GGUF로 변환하는 중, {percent}%</translation>
    </message>
    <message>
        <source>Waiting</source>
        <translation>대기 중</translation>
    </message>
    <message>
        <source>Downloading</source>
        <translation>내려받는 중</translation>
    </message>
    <message>
        <source>Checking its SHA-256</source>
        <translation>SHA-256을 확인하는 중</translation>
    </message>
    <message>
        <source>Paused</source>
        <translation>일시 중지됨</translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation>중지됨</translation>
    </message>
    <message>
        <source>Done</source>
        <translation>완료</translation>
    </message>
    <message>
        <source>Cancelled</source>
        <translation>취소됨</translation>
    </message>
    <message>
        <source>{done} of {total}</source>
        <translation>{total} 중 {done}</translation>
    </message>
    <message>
        <source>{seconds} s left</source>
        <translation>{seconds}초 남음</translation>
    </message>
    <message>
        <source>{minutes} min left</source>
        <translation>{minutes}분 남음</translation>
    </message>
    <message>
        <source>{hours} h left</source>
        <translation>{hours}시간 남음</translation>
    </message>
</context>
<context>
    <name>Drafting</name>
    <message>
        <source>Plain decoding has not been measured with this model yet.</source>
        <translation>이 모델의 일반 디코딩 속도는 아직 측정하지 않았습니다.</translation>
    </message>
    <message>
        <source>{times} times as fast as plain decoding ({plain}).</source>
        <translation>일반 디코딩({plain})보다 {times}배 빠릅니다.</translation>
    </message>
    <message>
        <source>Drafting costs more than it gains here: {times} of the speed of plain decoding ({plain}).</source>
        <translation>여기서는 드래프트의 비용이 이득보다 큽니다. 일반 디코딩({plain})의 {times}배 속도입니다.</translation>
    </message>
    <message>
        <source>As fast as plain decoding ({plain}): drafting gains nothing here.</source>
        <translation>일반 디코딩({plain})과 속도가 같습니다. 여기서는 드래프트의 이득이 없습니다.</translation>
    </message>
    <message>
        <source>Drafting is off: the target decodes alone.</source>
        <translation>드래프트를 쓰지 않습니다. 타깃 모델이 혼자 디코딩합니다.</translation>
    </message>
    <message>
        <source>Drafter: {name}</source>
        <translation>드래프터: {name}</translation>
    </message>
    <message>
        <source>Nothing was drafted in this answer.</source>
        <translation>이 답변에서는 드래프트가 없었습니다.</translation>
    </message>
    <message>
        <source>No model is loaded.</source>
        <translation>불러온 모델이 없습니다.</translation>
    </message>
    <message>
        <source>No drafter is there for this model: the target decodes alone.</source>
        <translation>이 모델에 맞는 드래프터가 없습니다. 타깃 모델이 혼자 디코딩합니다.</translation>
    </message>
    <message>
        <source>Its last answer here: {speed}.</source>
        <translation>이 대화에서 이 모드의 지난 답변: {speed}.</translation>
    </message>
    <message>
        <source>Its last answer here: {speed}, acceptance length {length}.</source>
        <translation>이 대화에서 이 모드의 지난 답변: {speed}, 수락 길이 {length}.</translation>
    </message>
    <message>
        <source>{mode} is not available. {reason}</source>
        <translation>{mode} 모드를 쓸 수 없습니다. {reason}</translation>
    </message>
</context>
<context>
    <name>Engine</name>
    <message>
        <source>Not drafting: plain decoding is faster for this text on this machine.</source>
        <translation>드래프트하지 않음: 이 컴퓨터에서 이 글은 일반 디코딩이 더 빠릅니다.</translation>
    </message>
    <message>
        <source>A plain pass, to see how fast that is now.</source>
        <translation>지금 일반 패스가 얼마나 빠른지 보려고 한 번 실행했습니다.</translation>
    </message>
    <message>
        <source>Nothing verified: the drafter is too unsure here.</source>
        <translation>검증하지 않음: 여기서는 드래프터의 확신이 너무 낮습니다.</translation>
    </message>
    <message>
        <source>{drafts}: all that were proposed.</source>
        <translation>{drafts}: 제안된 것을 모두 검증합니다.</translation>
    </message>
    <message>
        <source>{drafts}: {more} would cost more than it brings.</source>
        <translation>{drafts}: {more}부터는 비용이 이득보다 큽니다.</translation>
    </message>
    <message>
        <source>{drafts}, as set.</source>
        <translation>{drafts}, 설정한 대로입니다.</translation>
    </message>
    <message>
        <source>1 draft</source>
        <translation>드래프트 1개</translation>
    </message>
    <message>
        <source>{count} drafts</source>
        <translation>드래프트 {count}개</translation>
    </message>
    <message>
        <source>a {number}st</source>
        <translation>{number}번째 드래프트</translation>
    </message>
    <message>
        <source>a {number}nd</source>
        <translation>{number}번째 드래프트</translation>
    </message>
    <message>
        <source>a {number}rd</source>
        <translation>{number}번째 드래프트</translation>
    </message>
    <message>
        <source>a {number}th</source>
        <translation>{number}번째 드래프트</translation>
    </message>
    <message>
        <source>an {number}th</source>
        <translation>{number}번째 드래프트</translation>
    </message>
    <message>
        <source>The context is nearly full: {used} of {size} tokens are used.</source>
        <translation>컨텍스트가 거의 찼습니다: {size}토큰 중 {used}토큰을 썼습니다.</translation>
    </message>
    <message>
        <source>The conversation outgrew the context of {size} tokens: the model no longer sees {what}.</source>
        <translation>대화가 {size}토큰의 컨텍스트를 넘었습니다. 모델은 이제 {what}를 보지 못합니다.</translation>
    </message>
    <message>
        <source>the oldest question and its answer</source>
        <translation>가장 오래된 질문과 답변 1개</translation>
    </message>
    <message>
        <source>the {turns} oldest questions and answers</source>
        <translation>가장 오래된 질문과 답변 {turns}개</translation>
    </message>
    <message>
        <source>The prompt has {tokens} tokens and the context holds {size}; shorten it or choose a longer context.</source>
        <translation>프롬프트는 {tokens}토큰인데 컨텍스트에는 {size}토큰만 들어갑니다. 줄이거나 더 긴 컨텍스트를 고르십시오.</translation>
    </message>
    <message>
        <source>The conversation has outgrown the context of {size} tokens; start a new chat, choose a longer context, or let the oldest questions and answers be left out.</source>
        <translation>대화가 {size}토큰의 컨텍스트를 넘었습니다. 새 대화를 시작하거나 더 긴 컨텍스트를 고르거나, 가장 오래된 질문과 답변을 빼도록 설정하십시오.</translation>
    </message>
    <message>
        <source>The answer fills the context of {size} tokens; choose a longer context to go on with it.</source>
        <translation>답변이 {size}토큰의 컨텍스트를 다 채웠습니다. 이어 쓰려면 더 긴 컨텍스트를 고르십시오.</translation>
    </message>
    <message>
        <source>No {mode} drafter for {target} was found; put its .gguf into {folder} or give it with --drafter.</source>
        <translation>{target}에 맞는 {mode} 드래프터를 찾지 못했습니다. .gguf 파일을 {folder}에 넣거나 --drafter로 지정하십시오.</translation>
    </message>
    <message>
        <source>{file} is a {kind} drafter and was given for the mode {mode}; give it for {other}.</source>
        <translation>{file}은(는) {kind} 드래프터인데 {mode} 모드에 지정되었습니다. {other} 모드에 지정하십시오.</translation>
    </message>
    <message>
        <source>{one} does not fit {other}: {differences}; use a drafter made for this target.</source>
        <translation>{one}은(는) {other}에 맞지 않습니다: {differences}. 이 타깃 모델용 드래프터를 쓰십시오.</translation>
    </message>
    <message>
        <source>{file} is of architecture &apos;{architecture}&apos;, whose layers this program&apos;s llama.cpp does not hand out to a drafter; use the baseline mode, or a target of another architecture.</source>
        <translation>{file}은(는) &apos;{architecture}&apos; 구조이며, 이 프로그램의 llama.cpp는 이 구조의 층을 드래프터에 내주지 않습니다. 기본 모드를 쓰거나 다른 구조의 타깃 모델을 쓰십시오.</translation>
    </message>
    <message>
        <source>The drafter {file} computes values that are not numbers, so nothing is drafted; its file may be damaged: download it again.</source>
        <translation>드래프터 {file}의 계산 결과가 숫자가 아니어서 드래프트하지 않습니다. 파일이 손상되었을 수 있으니 다시 내려받으십시오.</translation>
    </message>
    <message>
        <source>The engine closed its connection and did not end; it was ended.</source>
        <translation>엔진이 연결을 닫고도 끝나지 않아 강제로 끝냈습니다.</translation>
    </message>
    <message>
        <source>The engine process ended without being asked to.</source>
        <translation>엔진 프로세스가 요청 없이 끝났습니다.</translation>
    </message>
    <message>
        <source>The engine process ended with exit status {number}{said}</source>
        <translation>엔진 프로세스가 종료 상태 {number}(으)로 끝났습니다{said}</translation>
    </message>
    <message>
        <source>The engine process was killed by the system (SIGKILL), possibly because the machine ran out of memory; a smaller model or a shorter context needs less.</source>
        <translation>시스템이 엔진 프로세스를 강제로 끝냈습니다(SIGKILL). 메모리가 부족했을 수 있습니다. 더 작은 모델이나 더 짧은 컨텍스트를 쓰면 메모리가 덜 듭니다.</translation>
    </message>
    <message>
        <source>The engine process was ended from outside ({signal}).</source>
        <translation>엔진 프로세스가 외부에서 종료되었습니다({signal}).</translation>
    </message>
    <message>
        <source>The engine process crashed ({signal}){said}</source>
        <translation>엔진 프로세스가 비정상 종료되었습니다({signal}){said}</translation>
    </message>
    <message>
        <source>The engine process could not be started ({reason}).</source>
        <translation>엔진 프로세스를 시작하지 못했습니다({reason}).</translation>
    </message>
    <message>
        <source>The engine met an error it does not know ({kind}: {error}); please report it.</source>
        <translation>엔진에서 알 수 없는 오류가 났습니다({kind}: {error}). 알려 주시기 바랍니다.</translation>
    </message>
    <message>
        <source>Stopped before it was finished.</source>
        <translation>끝나기 전에 중지했습니다.</translation>
    </message>
    <message>
        <source>No model is loaded; load one first.</source>
        <translation>불러온 모델이 없습니다. 먼저 모델을 불러오십시오.</translation>
    </message>
    <message>
        <source>The model {file} could not be loaded ({reason}); download it again, or choose another model.</source>
        <translation>모델 {file}을(를) 불러오지 못했습니다({reason}). 다시 내려받거나 다른 모델을 고르십시오.</translation>
    </message>
    <message>
        <source>There is not enough free memory for a context of {size} tokens; choose a shorter one.</source>
        <translation>{size}토큰의 컨텍스트를 담을 메모리가 부족합니다. 더 짧은 컨텍스트를 고르십시오.</translation>
    </message>
    <message>
        <source>The model {file} cannot keep its keys and values as {type} ({reason}); choose f16.</source>
        <translation>모델 {file}은(는) 키와 값을 {type} 형식으로 담을 수 없습니다({reason}). f16을 고르십시오.</translation>
    </message>
    <message>
        <source>There is not enough free memory for the drafter; choose a shorter context or close other programs.</source>
        <translation>드래프터를 올릴 메모리가 부족합니다. 더 짧은 컨텍스트를 고르거나 다른 프로그램을 닫으십시오.</translation>
    </message>
    <message>
        <source>There is no device {name} here; choose one of: {names}.</source>
        <translation>{name} 장치가 없습니다. 다음 중에서 고르십시오: {names}.</translation>
    </message>
    <message>
        <source>{file} does not exist; check the path or download the model.</source>
        <translation>{file} 파일이 없습니다. 경로를 확인하거나 모델을 내려받으십시오.</translation>
    </message>
    <message>
        <source>{file} is a folder, not a model file; choose a .gguf file in it.</source>
        <translation>{file}은(는) 모델 파일이 아니라 폴더입니다. 그 안의 .gguf 파일을 고르십시오.</translation>
    </message>
    <message>
        <source>{file} may not be read by this user; change its permissions.</source>
        <translation>{file} 파일을 읽을 권한이 없습니다. 권한을 바꾸십시오.</translation>
    </message>
    <message>
        <source>{file} cannot be read ({reason}); check the disk or the path.</source>
        <translation>{file} 파일을 읽을 수 없습니다({reason}). 디스크나 경로를 확인하십시오.</translation>
    </message>
    <message>
        <source>The embedded model is not installed; get it with: {command}</source>
        <translation>내장 모델이 설치되어 있지 않습니다. 다음 명령으로 설치하십시오: {command}</translation>
    </message>
    <message>
        <source>The prompt is empty; type a question first.</source>
        <translation>프롬프트가 비어 있습니다. 먼저 질문을 입력하십시오.</translation>
    </message>
    <message>
        <source>The prompt is not valid text (UTF-8); remove the characters that show as �.</source>
        <translation>프롬프트가 올바른 텍스트(UTF-8)가 아닙니다. �로 보이는 글자를 지우십시오.</translation>
    </message>
    <message>
        <source>There is no answer to go on with; ask a question first.</source>
        <translation>이어 쓸 답변이 없습니다. 먼저 질문하십시오.</translation>
    </message>
    <message>
        <source>There is no drafter for the mode {mode}.</source>
        <translation>{mode} 모드에 쓸 드래프터가 없습니다.</translation>
    </message>
    <message>
        <source>The chat template of {file} does not accept this conversation ({error}); start a new chat, without a system prompt if there is one.</source>
        <translation>{file}의 대화 템플릿이 이 대화를 받아들이지 않습니다({error}). 시스템 프롬프트가 있으면 빼고 새 대화를 시작하십시오.</translation>
    </message>
    <message>
        <source>Takes about {needed} of the {free} that are free.</source>
        <translation>비어 있는 {free} 중 약 {needed} 사용.</translation>
    </message>
    <message>
        <source>Takes about {needed}, nearly all of the {free} that are free; close other programs first.</source>
        <translation>약 {needed} 필요, 비어 있는 {free} 거의 전부입니다. 먼저 다른 프로그램을 닫으십시오.</translation>
    </message>
    <message>
        <source>Takes about {needed}, but only {free} are free; {advice}.</source>
        <translation>약 {needed} 필요, 비어 있는 메모리는 {free}뿐입니다. {advice}.</translation>
    </message>
    <message>
        <source>a context of {tokens} tokens would fit</source>
        <translation>{tokens}토큰의 컨텍스트라면 들어갑니다</translation>
    </message>
    <message>
        <source>the model in {type} (about {size}) would fit</source>
        <translation>{type} 형식(약 {size})의 모델이라면 들어갑니다</translation>
    </message>
    <message>
        <source>You are offline: {host} cannot be reached; what is on disk works.</source>
        <translation>오프라인입니다. {host}에 연결할 수 없지만 디스크에 있는 것은 쓸 수 있습니다.</translation>
    </message>
    <message>
        <source>{host} has stopped answering; try again later.</source>
        <translation>{host}이(가) 응답하지 않습니다. 나중에 다시 시도하십시오.</translation>
    </message>
    <message>
        <source>The connection to {host} broke; try again.</source>
        <translation>{host}와의 연결이 끊겼습니다. 다시 시도하십시오.</translation>
    </message>
    <message>
        <source>The certificate of {host} cannot be verified; check the clock, or set SSL_CERT_FILE to your proxy&apos;s certificate.</source>
        <translation>{host}의 인증서를 확인할 수 없습니다. 시계를 확인하거나 SSL_CERT_FILE을 프록시의 인증서로 지정하십시오.</translation>
    </message>
    <message>
        <source>{name} is gated: sign in at {page}, accept its conditions there, and give the program your token.</source>
        <translation>{name}은(는) 승인이 필요합니다. {page}에 로그인해 조건에 동의하고 프로그램에 토큰을 넣으십시오.</translation>
    </message>
    <message>
        <source>The Hub does not accept your token; give a new one.</source>
        <translation>허브가 토큰을 받아들이지 않습니다. 새 토큰을 넣으십시오.</translation>
    </message>
    <message>
        <source>The disk is full ({folder}): make room and go on, or set HF_HOME to another folder. What has been fetched of {file} is kept.</source>
        <translation>디스크가 가득 찼습니다({folder}). 공간을 확보하고 계속하거나 HF_HOME을 다른 폴더로 지정하십시오. 지금까지 받은 {file}은(는) 남아 있습니다.</translation>
    </message>
    <message>
        <source>Other programs took up to {share} of the processors meanwhile: read the speeds as ratios, and measure again on a quiet machine before relying on them.</source>
        <translation>그동안 다른 프로그램이 프로세서를 최대 {share} 썼습니다. 속도는 비율로만 보고, 믿기 전에 조용한 컴퓨터에서 다시 재십시오.</translation>
    </message>
    <message>
        <source>Temperature {temperature}, {once}: against the baseline&apos;s tokens/s, {parts}.</source>
        <translation>온도 {temperature}, {once}: 기본 모드의 초당 토큰 대비 {parts}.</translation>
    </message>
    <message>
        <source>one question at a time</source>
        <translation>한 번에 질문 하나씩</translation>
    </message>
    <message>
        <source>{count} questions at once</source>
        <translation>한 번에 질문 {count}개씩</translation>
    </message>
    <message>
        <source>Against {first}&apos;s, {second} {times}.</source>
        <translation>{first} 대비 {second} {times}.</translation>
    </message>
    <message>
        <source>The order {first}, {second}, baseline {held} in every run.</source>
        <translation>{first}, {second}, 기본 순서는 모든 측정에서 {held}.</translation>
    </message>
    <message>
        <source>held</source>
        <translation>그대로였습니다</translation>
    </message>
    <message>
        <source>did not hold</source>
        <translation>그대로이지는 않았습니다</translation>
    </message>
    <message>
        <source>{value} × ({judged})</source>
        <translation>{value}배({judged})</translation>
    </message>
    <message>
        <source>one run</source>
        <translation>1회 측정</translation>
    </message>
    <message>
        <source>{low}–{high} in {count} runs</source>
        <translation>{count}회 측정에서 {low}–{high}</translation>
    </message>
    <message>
        <source>{over}, on too busy a machine to judge</source>
        <translation>{over}, 컴퓨터가 너무 바빠 판단할 수 없음</translation>
    </message>
    <message>
        <source>{over}, faster</source>
        <translation>{over}, 더 빠름</translation>
    </message>
    <message>
        <source>{over}, slower</source>
        <translation>{over}, 더 느림</translation>
    </message>
    <message>
        <source>{over}, no clear difference</source>
        <translation>{over}, 뚜렷한 차이 없음</translation>
    </message>
    <message>
        <source>At temperature {temperature} hardly anything was drafted, or accepted, with {parts}.</source>
        <translation>온도 {temperature}에서는 드래프트되거나 수락된 것이 거의 없었습니다: {parts}.</translation>
    </message>
    <message>
        <source>{name} ({number} tokens per target pass)</source>
        <translation>{name}(타깃 패스당 {number}토큰)</translation>
    </message>
    <message>
        <source>The price: {prices}.</source>
        <translation>비용: {prices}.</translation>
    </message>
    <message>
        <source>{name} {seconds} s of start-up, {memory} MiB of memory and {disk} MB on disk</source>
        <translation>{name}: 시작 시간 {seconds}초, 메모리 {memory} MiB, 디스크 {disk} MB</translation>
    </message>
    <message>
        <source>All {count} greedy answers are the baseline&apos;s, token for token.</source>
        <translation>탐욕 디코딩 답변 {count}개가 모두 기본 모드와 토큰 하나하나까지 같습니다.</translation>
    </message>
    <message>
        <source>{count} of {number} greedy answers are the baseline&apos;s, token for token; the others part from it: {kinds}.</source>
        <translation>탐욕 디코딩 답변 {number}개 중 {count}개가 기본 모드와 토큰 하나하나까지 같고, 나머지는 다음 지점에서 갈라집니다: {kinds}.</translation>
    </message>
    <message>
        <source>{mode} was not measured. {reason}</source>
        <translation>{mode}은(는) 재지 않았습니다. {reason}</translation>
    </message>
    <message>
        <source>{name} could not be measured: {error}</source>
        <translation>{name}을(를) 재지 못했습니다: {error}</translation>
    </message>
    <message>
        <source>Temperature {temperature}</source>
        <translation>온도 {temperature}</translation>
    </message>
    <message>
        <source>tokens/s, one at a time</source>
        <translation>토큰/초, 하나씩</translation>
    </message>
    <message>
        <source>tokens/s in all, {count} at once</source>
        <translation>전체 토큰/초, 동시에 {count}개</translation>
    </message>
    <message>
        <source>tokens/s of each, {count} at once</source>
        <translation>각 토큰/초, 동시에 {count}개</translation>
    </message>
    <message>
        <source>time to first token, ms</source>
        <translation>첫 토큰까지, ms</translation>
    </message>
    <message>
        <source>acceptance length</source>
        <translation>수락 길이</translation>
    </message>
    <message>
        <source>tokens per target pass</source>
        <translation>타깃 패스당 토큰</translation>
    </message>
    <message>
        <source>drafts accepted, %</source>
        <translation>수락된 드래프트, %</translation>
    </message>
    <message>
        <source>verification passes</source>
        <translation>검증 패스</translation>
    </message>
    <message>
        <source>draft step, ms</source>
        <translation>드래프트 단계, ms</translation>
    </message>
    <message>
        <source>verification pass, ms</source>
        <translation>검증 패스, ms</translation>
    </message>
    <message>
        <source>ready after, s</source>
        <translation>준비까지, 초</translation>
    </message>
    <message>
        <source>peak memory, MiB</source>
        <translation>최고 메모리, MiB</translation>
    </message>
    <message>
        <source>drafter on disk, MB</source>
        <translation>드래프터 크기, MB</translation>
    </message>
    <message>
        <source>right answers</source>
        <translation>맞은 답변</translation>
    </message>
</context>
<context>
    <name>Figures</name>
    <message>
        <source>none</source>
        <translation>없음</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>속도</translation>
    </message>
    <message>
        <source>tokens/s</source>
        <translation>토큰/초</translation>
    </message>
    <message>
        <source>Tokens behind the first one, divided by the time from the first token to the newest. The reading of the prompt has no part in it.</source>
        <translation>첫 토큰 뒤에 나온 토큰 수를 첫 토큰부터 최근 토큰까지 걸린 시간으로 나눈 값입니다. 프롬프트를 읽는 시간은 들어가지 않습니다.</translation>
    </message>
    <message>
        <source>Speed-up</source>
        <translation>속도 향상</translation>
    </message>
    <message>
        <source>times</source>
        <translation>배</translation>
    </message>
    <message>
        <source>The speed of this answer, divided by the speed of plain decoding that was measured with this model on this machine. 1 means that drafting gained nothing.</source>
        <translation>이 답변의 속도를 이 컴퓨터에서 이 모델로 측정한 일반 디코딩 속도로 나눈 값입니다. 1이면 드래프트의 이득이 없었다는 뜻입니다.</translation>
    </message>
    <message>
        <source>Plain decoding</source>
        <translation>일반 디코딩</translation>
    </message>
    <message>
        <source>What the target alone reaches on this machine with this much context, one token per pass: measured.</source>
        <translation>이 컴퓨터에서 이만큼의 컨텍스트로 타깃 모델이 혼자, 패스마다 토큰 하나씩 낼 때의 측정된 속도입니다.</translation>
    </message>
    <message>
        <source>First token</source>
        <translation>첫 토큰</translation>
    </message>
    <message>
        <source>s</source>
        <translation>초</translation>
    </message>
    <message>
        <source>Seconds from the moment the question arrived at the engine to the answer&apos;s first token.</source>
        <translation>질문이 엔진에 도착한 때부터 답변의 첫 토큰까지 걸린 시간(초)입니다.</translation>
    </message>
    <message>
        <source>Prompt reading</source>
        <translation>프롬프트 읽기</translation>
    </message>
    <message>
        <source>Prompt tokens that were read, divided by the time spent reading them. Tokens taken from the cache are not among them.</source>
        <translation>읽은 프롬프트 토큰 수를 읽는 데 걸린 시간으로 나눈 값입니다. 캐시에서 가져온 토큰은 세지 않습니다.</translation>
    </message>
    <message>
        <source>Acceptance length</source>
        <translation>수락 길이</translation>
    </message>
    <message>
        <source>tokens</source>
        <translation>토큰</translation>
    </message>
    <message>
        <source>Tokens emitted by verification passes, divided by the number of verification passes: the drafts that were accepted and one token of the target&apos;s own. 1 means that no draft was accepted.</source>
        <translation>검증 패스가 내보낸 토큰 수를 검증 패스 수로 나눈 값으로, 수락된 드래프트에 타깃 모델 자신의 토큰 하나를 더한 것입니다. 1이면 수락된 드래프트가 없다는 뜻입니다.</translation>
    </message>
    <message>
        <source>Tokens per target pass</source>
        <translation>타깃 패스당 토큰</translation>
    </message>
    <message>
        <source>All tokens emitted by target passes, divided by all target passes behind the prompt, plain ones included: what drafting saves. Without drafts it is exactly 1.</source>
        <translation>타깃 패스가 내보낸 모든 토큰 수를 프롬프트 뒤의 모든 타깃 패스 수(일반 패스 포함)로 나눈 값으로, 드래프트가 아껴 준 만큼을 나타냅니다. 드래프트가 없으면 정확히 1입니다.</translation>
    </message>
    <message>
        <source>Drafts accepted</source>
        <translation>수락된 드래프트</translation>
    </message>
    <message>
        <source>Drafts accepted, divided by drafts that were verified.</source>
        <translation>수락된 드래프트 수를 검증한 드래프트 수로 나눈 값입니다.</translation>
    </message>
    <message>
        <source>Draft length</source>
        <translation>드래프트 길이</translation>
    </message>
    <message>
        <source>How many drafts were sent to verification in the newest cycle; 0: a plain pass.</source>
        <translation>가장 최근 사이클에서 검증에 보낸 드래프트 수입니다. 0이면 일반 패스입니다.</translation>
    </message>
    <message>
        <source>Draft</source>
        <translation>드래프트</translation>
    </message>
    <message>
        <source>ms</source>
        <translation>ms</translation>
    </message>
    <message>
        <source>Mean time of a draft step: the drafter proposes one block of tokens.</source>
        <translation>드래프터가 토큰 한 블록을 제안하는 드래프트 단계의 평균 시간입니다.</translation>
    </message>
    <message>
        <source>Verify</source>
        <translation>검증</translation>
    </message>
    <message>
        <source>Mean time of a verification pass: the target checks the drafts of one block.</source>
        <translation>타깃 모델이 한 블록의 드래프트를 확인하는 검증 패스의 평균 시간입니다.</translation>
    </message>
    <message>
        <source>Verification passes</source>
        <translation>검증 패스</translation>
    </message>
    <message>
        <source>Target passes that checked at least one draft.</source>
        <translation>드래프트를 하나 이상 확인한 타깃 패스의 수입니다.</translation>
    </message>
    <message>
        <source>Acceptance by position</source>
        <translation>위치별 수락률</translation>
    </message>
    <message>
        <source>Position k: among the cycles in which draft k was verified, the share in which drafts 1 to k were all accepted.</source>
        <translation>위치 k: 드래프트 k를 검증한 사이클 가운데 드래프트 1부터 k까지 모두 수락된 비율입니다.</translation>
    </message>
    <message>
        <source>Speed over time</source>
        <translation>시간별 속도</translation>
    </message>
    <message>
        <source>Each point: the tokens that came since the point before, divided by the time they took. The dashed line is plain decoding, as measured on this machine.</source>
        <translation>각 점은 앞 점 이후에 나온 토큰 수를 걸린 시간으로 나눈 값입니다. 점선은 이 컴퓨터에서 측정한 일반 디코딩 속도입니다.</translation>
    </message>
    <message>
        <source>Over the answers</source>
        <translation>답변별 변화</translation>
    </message>
    <message>
        <source>The acceptance length of each answer of this conversation, oldest first. An answer without drafts has none.</source>
        <translation>이 대화의 답변마다의 수락 길이를 오래된 것부터 보여 줍니다. 드래프트가 없는 답변에는 값이 없습니다.</translation>
    </message>
    <message>
        <source>Target weights</source>
        <translation>타깃 가중치</translation>
    </message>
    <message>
        <source>The target&apos;s weights, as they lie in memory.</source>
        <translation>메모리에 올라간 타깃 모델의 가중치입니다.</translation>
    </message>
    <message>
        <source>Target context</source>
        <translation>타깃 컨텍스트</translation>
    </message>
    <message>
        <source>The target&apos;s keys and values, and the buffers it computes in.</source>
        <translation>타깃 모델의 키와 값, 그리고 계산에 쓰는 버퍼입니다.</translation>
    </message>
    <message>
        <source>Drafter weights</source>
        <translation>드래프터 가중치</translation>
    </message>
    <message>
        <source>The drafters&apos; own weights, copies in a faster type included. What they share with the target is not.</source>
        <translation>드래프터 자신의 가중치이며, 더 빠른 형식의 사본도 포함합니다. 타깃 모델과 함께 쓰는 것은 포함하지 않습니다.</translation>
    </message>
    <message>
        <source>Drafter keys and values</source>
        <translation>드래프터 키·값</translation>
    </message>
    <message>
        <source>The drafters&apos; caches.</source>
        <translation>드래프터의 캐시입니다.</translation>
    </message>
    <message>
        <source>Everything else</source>
        <translation>그 밖의 것</translation>
    </message>
    <message>
        <source>What else the engine process holds: libraries, vocabulary, scratch space.</source>
        <translation>엔진 프로세스가 그 밖에 차지하는 것으로, 라이브러리와 어휘, 작업 공간입니다.</translation>
    </message>
    <message>
        <source>What the engine process holds in memory now (its resident set), of the memory this machine has. The window is another process and not in it.</source>
        <translation>이 컴퓨터의 메모리 가운데 엔진 프로세스가 지금 차지하는 양(상주 메모리)입니다. 창은 다른 프로세스이므로 포함하지 않습니다.</translation>
    </message>
    <message>
        <source>Tokens of the conversation that the model has before it, of those that the loaded context can hold.</source>
        <translation>불러온 컨텍스트에 담을 수 있는 토큰 가운데 지금 모델이 보고 있는 대화의 토큰 수입니다.</translation>
    </message>
    <message>
        <source>When it is full, the oldest questions and answers are left out; the system prompt stays.</source>
        <translation>가득 차면 가장 오래된 질문과 답변부터 빠집니다. 시스템 프롬프트는 남습니다.</translation>
    </message>
    <message>
        <source>When it is full, the answer ends there; go on in a new conversation.</source>
        <translation>가득 차면 답변이 거기서 끝납니다. 새 대화에서 이어 가십시오.</translation>
    </message>
</context>
<context>
    <name>Files</name>
    <message>
        <source>{file} is not a file; drop a text file.</source>
        <translation>{file}은(는) 파일이 아닙니다. 텍스트 파일을 끌어다 놓으십시오.</translation>
    </message>
    <message>
        <source>{file} has {size}; a file for the prompt can have {largest} at most.</source>
        <translation>{file} 파일은 {size}입니다. 프롬프트에 넣는 파일은 {largest}까지 가능합니다.</translation>
    </message>
    <message>
        <source>{file} cannot be read ({reason}).</source>
        <translation>{file} 파일을 읽을 수 없습니다({reason}).</translation>
    </message>
    <message>
        <source>{file} is not a text file; save it as plain text (UTF-8) first.</source>
        <translation>{file}은(는) 텍스트 파일이 아닙니다. 먼저 일반 텍스트(UTF-8)로 저장하십시오.</translation>
    </message>
    <message>
        <source>Take {file} out</source>
        <translation>{file} 빼기</translation>
    </message>
    <message>
        <source>{tokens} tokens, more than the context has left</source>
        <translation>{tokens}토큰, 컨텍스트에 남은 것보다 많습니다</translation>
    </message>
    <message>
        <source>{tokens} tokens</source>
        <translation>{tokens}토큰</translation>
    </message>
</context>
<context>
    <name>Input</name>
    <message>
        <source>Write a message</source>
        <translation>메시지를 입력하십시오</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>메시지</translation>
    </message>
</context>
<context>
    <name>Models</name>
    <message>
        <source>Words, or a repository as owner/name</source>
        <translation>낱말, 또는 소유자/이름 형식의 저장소</translation>
    </message>
    <message>
        <source>Search the Hub</source>
        <translation>허브 검색</translation>
    </message>
    <message>
        <source>Clear the search</source>
        <translation>검색 지우기</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>검색</translation>
    </message>
    <message>
        <source>Asking the Hub…</source>
        <translation>허브에 묻는 중…</translation>
    </message>
    <message>
        <source>Nothing was found. Try fewer words.</source>
        <translation>찾은 것이 없습니다. 낱말을 줄여 보십시오.</translation>
    </message>
    <message>
        <source>Search for a model by its name, such as “qwen3 8b”, or paste its address.</source>
        <translation>“qwen3 8b”처럼 모델 이름으로 검색하거나 주소를 붙여 넣으십시오.</translation>
    </message>
    <message>
        <source>Back to what was found</source>
        <translation>검색 결과로 돌아가기</translation>
    </message>
    <message>
        <source>Open its page</source>
        <translation>페이지 열기</translation>
    </message>
    <message>
        <source>Weights in safetensors form, {size}. A DFlash drafter can be converted to GGUF.</source>
        <translation>safetensors 형식의 가중치({size})입니다. DFlash 드래프터는 GGUF로 변환할 수 있습니다.</translation>
    </message>
    <message>
        <source>Download and convert…</source>
        <translation>내려받아 변환…</translation>
    </message>
    <message>
        <source>Check</source>
        <translation>확인</translation>
    </message>
    <message>
        <source>Check {name}</source>
        <translation>{name} 확인</translation>
    </message>
    <message>
        <source>Download</source>
        <translation>내려받기</translation>
    </message>
    <message>
        <source>Download {name}</source>
        <translation>{name} 내려받기</translation>
    </message>
    <message>
        <source>Reading its header, {size} so far</source>
        <translation>헤더를 읽는 중, 지금까지 {size}</translation>
    </message>
    <message>
        <source>Is here</source>
        <translation>있음</translation>
    </message>
    <message>
        <source>Downloading</source>
        <translation>내려받는 중</translation>
    </message>
    <message>
        <source>Download all the same</source>
        <translation>그래도 내려받기</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>다시 시도</translation>
    </message>
    <message>
        <source>Your token, from the page “Access Tokens” of the Hub</source>
        <translation>허브의 “Access Tokens” 페이지에서 받은 토큰</translation>
    </message>
    <message>
        <source>Access token</source>
        <translation>액세스 토큰</translation>
    </message>
    <message>
        <source>Keep the token</source>
        <translation>토큰 저장</translation>
    </message>
    <message>
        <source>A token lets the program fetch gated and private models that your account may read.</source>
        <translation>토큰이 있으면 계정으로 읽을 수 있는 승인제·비공개 모델을 내려받을 수 있습니다.</translation>
    </message>
    <message>
        <source>{tokens} tokens of context</source>
        <translation>컨텍스트 {tokens}토큰</translation>
    </message>
    <message>
        <source>{count} parameters</source>
        <translation>매개변수 {count}</translation>
    </message>
    <message>
        <source>from {repository}</source>
        <translation>{repository}에서</translation>
    </message>
    <message>
        <source>came with the program</source>
        <translation>프로그램에 포함</translation>
    </message>
    <message>
        <source>in your folder</source>
        <translation>내 폴더</translation>
    </message>
    <message>
        <source>imported</source>
        <translation>가져옴</translation>
    </message>
    <message>
        <source>Takes about {needed} of memory; {free} are free.</source>
        <translation>메모리를 약 {needed} 씁니다. 비어 있는 메모리는 {free}입니다.</translation>
    </message>
    <message>
        <source>Takes about {needed}, nearly all of the {free} that are free: close other programs.</source>
        <translation>메모리가 약 {needed} 필요해 비어 있는 {free} 거의 전부를 씁니다. 다른 프로그램을 닫으십시오.</translation>
    </message>
    <message>
        <source>Takes about {needed} of memory, but {free} are free.</source>
        <translation>메모리가 약 {needed} 필요하지만 {free}만 비어 있습니다.</translation>
    </message>
    <message>
        <source>A context of {tokens} tokens would fit.</source>
        <translation>{tokens}토큰의 컨텍스트라면 들어갑니다.</translation>
    </message>
    <message>
        <source>In {quantisation} (about {size}) it would fit.</source>
        <translation>{quantisation} 형식(약 {size})이라면 들어갑니다.</translation>
    </message>
    <message>
        <source>Choose a smaller model.</source>
        <translation>더 작은 모델을 고르십시오.</translation>
    </message>
    <message>
        <source>Get the {mode} drafter ({size})</source>
        <translation>{mode} 드래프터 받기({size})</translation>
    </message>
    <message>
        <source>Get the {mode} drafter</source>
        <translation>{mode} 드래프터 받기</translation>
    </message>
    <message>
        <source>{count} downloads</source>
        <translation>다운로드 {count}회</translation>
    </message>
    <message>
        <source>gated</source>
        <translation>승인 필요</translation>
    </message>
    <message>
        <source>private</source>
        <translation>비공개</translation>
    </message>
    <message>
        <source>{count} parts</source>
        <translation>{count}부분</translation>
    </message>
    <message>
        <source>{name} holds no GGUF file; choose another repository.</source>
        <translation>{name}에는 GGUF 파일이 없습니다. 다른 저장소를 고르십시오.</translation>
    </message>
    <message>
        <source>The token is kept in {place}.</source>
        <translation>토큰은 {place}에 저장되어 있습니다.</translation>
    </message>
    <message>
        <source>This is {kind}.</source>
        <translation>종류: {kind}.</translation>
    </message>
    <message>
        <source>On this computer</source>
        <translation>이 컴퓨터에서</translation>
    </message>
    <message>
        <source>On the Hub</source>
        <translation>허브에서</translation>
    </message>
    <message>
        <source>Import…</source>
        <translation>가져오기…</translation>
    </message>
    <message>
        <source>A GGUF file…</source>
        <translation>GGUF 파일…</translation>
    </message>
    <message>
        <source>A drafter in safetensors form (a folder)…</source>
        <translation>safetensors 형식의 드래프터(폴더)…</translation>
    </message>
    <message>
        <source>Token…</source>
        <translation>토큰…</translation>
    </message>
    <message>
        <source>Back to the chat</source>
        <translation>대화로 돌아가기</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>Reading {name}…</source>
        <translation>{name}을(를) 읽는 중…</translation>
    </message>
    <message>
        <source>Import a model</source>
        <translation>모델 가져오기</translation>
    </message>
    <message>
        <source>GGUF models (*.gguf)</source>
        <translation>GGUF 모델(*.gguf)</translation>
    </message>
    <message>
        <source>Import a drafter&apos;s folder</source>
        <translation>드래프터 폴더 가져오기</translation>
    </message>
    <message>
        <source>Only GGUF files, and folders of drafters with config.json, can be imported.</source>
        <translation>GGUF 파일과 config.json이 있는 드래프터 폴더만 가져올 수 있습니다.</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>제거</translation>
    </message>
    <message>
        <source>Remove {name}?</source>
        <translation>{name}을(를) 제거할까요?</translation>
    </message>
    <message>
        <source>The file stays where it is; the program forgets it.</source>
        <translation>파일은 그대로 두고 목록에서만 뺍니다.</translation>
    </message>
    <message>
        <source>The file is deleted from the disk: {path}</source>
        <translation>디스크에서 파일을 삭제합니다: {path}</translation>
    </message>
    <message>
        <source>Keep it</source>
        <translation>그대로 두기</translation>
    </message>
    <message>
        <source>Close this message</source>
        <translation>이 메시지 닫기</translation>
    </message>
    <message>
        <source>Looking at the disk…</source>
        <translation>디스크를 살펴보는 중…</translation>
    </message>
    <message>
        <source>No model is here yet.</source>
        <translation>아직 모델이 없습니다.</translation>
    </message>
    <message>
        <source>Drafters whose model is not here</source>
        <translation>모델이 없는 드래프터</translation>
    </message>
    <message>
        <source>Files that cannot be used</source>
        <translation>쓸 수 없는 파일</translation>
    </message>
    <message>
        <source>What can be done with {name}</source>
        <translation>{name} 메뉴</translation>
    </message>
    <message>
        <source>Load</source>
        <translation>불러오기</translation>
    </message>
    <message>
        <source>Load {name}</source>
        <translation>{name} 불러오기</translation>
    </message>
    <message>
        <source>Unload</source>
        <translation>내리기</translation>
    </message>
    <message>
        <source>Unload {name}</source>
        <translation>{name} 내리기</translation>
    </message>
    <message>
        <source>Give its memory back (Ctrl+Shift+U)</source>
        <translation>메모리 돌려주기(Ctrl+Shift+U)</translation>
    </message>
    <message>
        <source>In use</source>
        <translation>사용 중</translation>
    </message>
    <message>
        <source>Show its folder</source>
        <translation>폴더 보기</translation>
    </message>
    <message>
        <source>Check the file</source>
        <translation>파일 확인</translation>
    </message>
    <message>
        <source>Remove…</source>
        <translation>제거…</translation>
    </message>
</context>
<context>
    <name>Modes</name>
    <message>
        <source>The target alone: one token per pass.</source>
        <translation>타깃 모델만 씁니다. 패스마다 토큰 하나를 냅니다.</translation>
    </message>
    <message>
        <source>A drafter proposes a block of tokens, each position on its own; the target verifies them in one pass.</source>
        <translation>드래프터가 위치마다 따로 예측해 토큰 한 블록을 제안하고, 타깃 모델이 한 번의 패스로 검증합니다.</translation>
    </message>
    <message>
        <source>As DFlash, and a selector picks drafts that follow each other; the target verifies them in one pass.</source>
        <translation>DFlash와 같지만 선택기가 서로 이어지는 드래프트를 고르고, 타깃 모델이 한 번의 패스로 검증합니다.</translation>
    </message>
    <message>
        <source>Baseline</source>
        <translation>기본</translation>
    </message>
    <message>
        <source>Decoding mode</source>
        <translation>디코딩 모드</translation>
    </message>
    <message>
        <source>Mode: {name}</source>
        <translation>모드: {name}</translation>
    </message>
    <message>
        <source>Not available: {reason}</source>
        <translation>사용할 수 없음: {reason}</translation>
    </message>
    <message>
        <source>No model is loaded.</source>
        <translation>불러온 모델이 없습니다.</translation>
    </message>
    <message>
        <source>{mode} cannot be used now</source>
        <translation>지금은 {mode} 모드를 쓸 수 없습니다</translation>
    </message>
    <message>
        <source>Get a drafter…</source>
        <translation>드래프터 구하기…</translation>
    </message>
</context>
<context>
    <name>Panel</name>
    <message>
        <source>Live figures</source>
        <translation>실시간 수치</translation>
    </message>
    <message>
        <source>Drafting</source>
        <translation>드래프트</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>메모리</translation>
    </message>
    <message>
        <source>Details</source>
        <translation>자세히</translation>
    </message>
    <message>
        <source>Hide the details</source>
        <translation>자세한 수치 숨기기</translation>
    </message>
    <message>
        <source>Show the details</source>
        <translation>자세한 수치 보기</translation>
    </message>
    <message>
        <source>Speed over time, now {speed}</source>
        <translation>시간별 속도, 지금 {speed}</translation>
    </message>
    <message>
        <source>{now} in use of this machine&apos;s {machine}, {peak} at the peak</source>
        <translation>이 컴퓨터의 {machine} 중 {now} 사용, 최고 {peak}</translation>
    </message>
    <message>
        <source>No model is loaded.</source>
        <translation>불러온 모델이 없습니다.</translation>
    </message>
    <message>
        <source>Memory: {words}</source>
        <translation>메모리: {words}</translation>
    </message>
    <message>
        <source>This answer</source>
        <translation>이 답변</translation>
    </message>
    <message>
        <source>Last answer</source>
        <translation>지난 답변</translation>
    </message>
    <message>
        <source>Next answer</source>
        <translation>다음 답변</translation>
    </message>
</context>
<context>
    <name>Presets</name>
    <message>
        <source>Precise</source>
        <translation>정확</translation>
    </message>
    <message>
        <source>Balanced</source>
        <translation>균형</translation>
    </message>
    <message>
        <source>Creative</source>
        <translation>창의적</translation>
    </message>
    <message>
        <source>None</source>
        <translation>없음</translation>
    </message>
    <message>
        <source>Brief</source>
        <translation>간결하게</translation>
    </message>
    <message>
        <source>Patient teacher</source>
        <translation>친절한 선생님</translation>
    </message>
    <message>
        <source>Programmer</source>
        <translation>프로그래머</translation>
    </message>
    <message>
        <source>{name}, my version</source>
        <translation>{name}, 내 설정</translation>
    </message>
</context>
<context>
    <name>Quest</name>
    <message>
        <source>Progress of the drafter&apos;s download</source>
        <translation>드래프터 다운로드 진행률</translation>
    </message>
    <message>
        <source>Open its page</source>
        <translation>페이지 열기</translation>
    </message>
    <message>
        <source>Go on</source>
        <translation>계속</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>취소</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>닫기</translation>
    </message>
    <message>
        <source>Finding the {mode} drafter. {step}</source>
        <translation>{mode} 드래프터를 찾는 중입니다. {step}</translation>
    </message>
    <message>
        <source>Getting the {mode} drafter: {done} of {total}</source>
        <translation>{mode} 드래프터를 받는 중: {total} 중 {done}</translation>
    </message>
    <message>
        <source>Getting the {mode} drafter</source>
        <translation>{mode} 드래프터를 받는 중</translation>
    </message>
    <message>
        <source>Turning {mode} on</source>
        <translation>{mode} 켜는 중</translation>
    </message>
    <message>
        <source>{mode} is on: the next answer uses it.</source>
        <translation>{mode} 모드를 켰습니다. 다음 답변부터 씁니다.</translation>
    </message>
    <message>
        <source>The drafter is here. It is used when its model is loaded.</source>
        <translation>드래프터를 받았습니다. 그 모델을 불러오면 쓰입니다.</translation>
    </message>
    <message>
        <source>The Hub has no {mode} drafter that fits this model.</source>
        <translation>허브에 이 모델에 맞는 {mode} 드래프터가 없습니다.</translation>
    </message>
</context>
<context>
    <name>Question</name>
    <message>
        <source>Your message</source>
        <translation>내 메시지</translation>
    </message>
    <message>
        <source>Edit this message</source>
        <translation>이 메시지 고치기</translation>
    </message>
    <message>
        <source>Edit this message and send it again</source>
        <translation>이 메시지를 고쳐서 다시 보내기</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>보내기</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>취소</translation>
    </message>
</context>
<context>
    <name>Settings</name>
    <message>
        <source>Choice of words</source>
        <translation>표현 방식</translation>
    </message>
    <message>
        <source>Precise always takes the likeliest token. Higher temperatures are more surprising.</source>
        <translation>정확은 항상 가장 가능성 높은 토큰을 고릅니다. 온도가 높을수록 뜻밖의 답이 나옵니다.</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>끔</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>온도</translation>
    </message>
    <message>
        <source>0 always takes the likeliest token.</source>
        <translation>0이면 항상 가장 가능성 높은 토큰을 고릅니다.</translation>
    </message>
    <message>
        <source>Top k</source>
        <translation>상위 k</translation>
    </message>
    <message>
        <source>Only the k likeliest tokens are drawn from.</source>
        <translation>가장 가능성 높은 토큰 k개 중에서만 고릅니다.</translation>
    </message>
    <message>
        <source>Top p</source>
        <translation>상위 p</translation>
    </message>
    <message>
        <source>Only the likeliest tokens that make up this share; 1 is off.</source>
        <translation>가능성 높은 순으로 합이 이 비율이 될 때까지의 토큰만 씁니다. 1이면 끕니다.</translation>
    </message>
    <message>
        <source>Min p</source>
        <translation>최소 p</translation>
    </message>
    <message>
        <source>Only tokens at least this likely, compared with the likeliest; 0 is off.</source>
        <translation>가장 가능성 높은 토큰에 견주어 이 비율 이상인 토큰만 씁니다. 0이면 끕니다.</translation>
    </message>
    <message>
        <source>Repetition penalty</source>
        <translation>반복 페널티</translation>
    </message>
    <message>
        <source>Makes tokens that were said less likely; 1 is off.</source>
        <translation>이미 나온 토큰이 덜 나오게 합니다. 1이면 끕니다.</translation>
    </message>
    <message>
        <source>Presence penalty</source>
        <translation>존재 페널티</translation>
    </message>
    <message>
        <source>The same for every token that was said; 0 is off.</source>
        <translation>나온 토큰마다 똑같이 적용합니다. 0이면 끕니다.</translation>
    </message>
    <message>
        <source>Frequency penalty</source>
        <translation>빈도 페널티</translation>
    </message>
    <message>
        <source>Grows with how often it was said; 0 is off.</source>
        <translation>많이 나온 토큰일수록 커집니다. 0이면 끕니다.</translation>
    </message>
    <message>
        <source>Penalties look back</source>
        <translation>페널티 범위</translation>
    </message>
    <message>
        <source>How many of the newest tokens they see.</source>
        <translation>페널티가 살피는 최근 토큰의 수입니다.</translation>
    </message>
    <message>
        <source>All</source>
        <translation>모두</translation>
    </message>
    <message>
        <source>Seed</source>
        <translation>시드</translation>
    </message>
    <message>
        <source>The same seed draws the same answer.</source>
        <translation>시드가 같으면 같은 답변이 나옵니다.</translation>
    </message>
    <message>
        <source>A new one for each answer</source>
        <translation>답변마다 새로</translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation>시스템 프롬프트</translation>
    </message>
    <message>
        <source>What the model is told before the conversation. It holds from the next answer on.</source>
        <translation>대화에 앞서 모델에 알려 주는 말입니다. 다음 답변부터 적용됩니다.</translation>
    </message>
    <message>
        <source>Text of the system prompt</source>
        <translation>시스템 프롬프트 내용</translation>
    </message>
    <message>
        <source>Rename…</source>
        <translation>이름 바꾸기…</translation>
    </message>
    <message>
        <source>Rename this preset</source>
        <translation>이 프리셋 이름 바꾸기</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>삭제</translation>
    </message>
    <message>
        <source>Delete this preset</source>
        <translation>이 프리셋 삭제</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>이름 바꾸기</translation>
    </message>
    <message>
        <source>Name:</source>
        <translation>이름:</translation>
    </message>
    <message>
        <source>The settings file could not be read completely ({what}); defaults are used. It is kept as {file}.</source>
        <translation>설정 파일을 다 읽지 못해({what}) 기본값을 씁니다. 원래 파일은 {file}에 남겨 두었습니다.</translation>
    </message>
    <message>
        <source>On</source>
        <translation>켬</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>설정</translation>
    </message>
    <message>
        <source>Sections</source>
        <translation>항목</translation>
    </message>
    <message>
        <source>Answers</source>
        <translation>답변</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>Appearance</source>
        <translation>화면</translation>
    </message>
    <message>
        <source>Mode</source>
        <translation>모드</translation>
    </message>
    <message>
        <source>How answers are decoded. The words are the model&apos;s own in every mode.</source>
        <translation>답변을 디코딩하는 방식입니다. 어느 모드에서나 내용은 모델 자신의 것입니다.</translation>
    </message>
    <message>
        <source>The best there is</source>
        <translation>쓸 수 있는 가장 좋은 모드</translation>
    </message>
    <message>
        <source>Draft length</source>
        <translation>드래프트 길이</translation>
    </message>
    <message>
        <source>How many tokens are drafted and checked in a pass. Automatic measures what pays.</source>
        <translation>한 패스에서 제안하고 확인하는 토큰 수입니다. 자동이면 측정해서 이득이 되는 길이를 씁니다.</translation>
    </message>
    <message>
        <source>Automatic</source>
        <translation>자동</translation>
    </message>
    <message>
        <source>The model that comes with the program</source>
        <translation>프로그램에 들어 있는 모델</translation>
    </message>
    <message>
        <source>Target</source>
        <translation>타깃 모델</translation>
    </message>
    <message>
        <source>The model that answers: a GGUF file.</source>
        <translation>답변하는 모델입니다(GGUF 파일).</translation>
    </message>
    <message>
        <source>Drafter for {mode}</source>
        <translation>{mode} 드래프터</translation>
    </message>
    <message>
        <source>For this target. Automatic takes the best of those that fit.</source>
        <translation>이 타깃 모델에 쓸 드래프터입니다. 자동이면 맞는 것 중에서 가장 좋은 것을 씁니다.</translation>
    </message>
    <message>
        <source>Context length</source>
        <translation>컨텍스트 길이</translation>
    </message>
    <message>
        <source>Tokens the model can have before it. More takes more memory.</source>
        <translation>모델이 볼 수 있는 토큰 수입니다. 클수록 메모리를 더 씁니다.</translation>
    </message>
    <message>
        <source>When the context is full</source>
        <translation>컨텍스트가 가득 차면</translation>
    </message>
    <message>
        <source>The system prompt always stays.</source>
        <translation>시스템 프롬프트는 항상 남습니다.</translation>
    </message>
    <message>
        <source>Leave out the oldest turns</source>
        <translation>가장 오래된 대화부터 빼기</translation>
    </message>
    <message>
        <source>Stop, and say so</source>
        <translation>멈추고 알리기</translation>
    </message>
    <message>
        <source>Keys and values</source>
        <translation>키와 값</translation>
    </message>
    <message>
        <source>How the context is kept in memory. Smaller types take less of it, and round more.</source>
        <translation>컨텍스트를 메모리에 담는 형식입니다. 작은 형식은 메모리를 덜 쓰지만 반올림이 커집니다.</translation>
    </message>
    <message>
        <source>16 bits (exact)</source>
        <translation>16비트(정확)</translation>
    </message>
    <message>
        <source>8 bits (half the memory)</source>
        <translation>8비트(메모리 절반)</translation>
    </message>
    <message>
        <source>4 bits (a quarter)</source>
        <translation>4비트(메모리 4분의 1)</translation>
    </message>
    <message>
        <source>Threads</source>
        <translation>스레드</translation>
    </message>
    <message>
        <source>Automatic takes one for each core of the processor.</source>
        <translation>자동이면 프로세서 코어마다 하나씩 씁니다.</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>장치</translation>
    </message>
    <message>
        <source>Where the model is computed.</source>
        <translation>모델을 계산하는 곳입니다.</translation>
    </message>
    <message>
        <source>Layers on the GPU</source>
        <translation>GPU에 올릴 층</translation>
    </message>
    <message>
        <source>How many of the model&apos;s layers go to the GPU, where there is one.</source>
        <translation>GPU가 있을 때 GPU에 올릴 모델 층의 수입니다.</translation>
    </message>
    <message>
        <source>As many as fit</source>
        <translation>들어가는 만큼</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>테마</translation>
    </message>
    <message>
        <source>As the system</source>
        <translation>시스템 설정</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>밝게</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>어둡게</translation>
    </message>
    <message>
        <source>Colour the tokens</source>
        <translation>토큰에 색 입히기</translation>
    </message>
    <message>
        <source>Answers show which tokens were drafted, and what else the target considered.</source>
        <translation>답변에서 어떤 토큰이 드래프트되었는지, 타깃 모델이 그 밖에 무엇을 고려했는지 보여 줍니다.</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>언어</translation>
    </message>
    <message>
        <source>Of the window. The model answers in the language you write.</source>
        <translation>창의 언어입니다. 모델은 질문한 언어로 답합니다.</translation>
    </message>
    <message>
        <source>Font</source>
        <translation>글꼴</translation>
    </message>
    <message>
        <source>{family} (built in)</source>
        <translation>{family}(내장)</translation>
    </message>
    <message>
        <source>Text size</source>
        <translation>글자 크기</translation>
    </message>
    <message>
        <source>Everything in the window grows with it. Also: Ctrl and + or −.</source>
        <translation>창의 모든 것이 함께 커집니다. Ctrl과 + 또는 −로도 바꿀 수 있습니다.</translation>
    </message>
    <message>
        <source>Code size</source>
        <translation>코드 크기</translation>
    </message>
    <message>
        <source>Reduced motion</source>
        <translation>움직임 줄이기</translation>
    </message>
    <message>
        <source>Nothing slides or fades.</source>
        <translation>미끄러지거나 흐려지는 움직임을 없앱니다.</translation>
    </message>
    <message>
        <source>Reload now</source>
        <translation>지금 다시 불러오기</translation>
    </message>
    <message>
        <source>Back to the defaults</source>
        <translation>기본값으로</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>닫기</translation>
    </message>
    <message>
        <source>This build of the engine computes on the processor only.</source>
        <translation>이 엔진은 프로세서로만 계산합니다.</translation>
    </message>
    <message>
        <source>Some changes take effect when the model is loaded again. The chat stays.</source>
        <translation>일부 변경은 모델을 다시 불러와야 적용됩니다. 대화는 그대로 남습니다.</translation>
    </message>
    <message>
        <source>The settings could not be stored ({reason}); they hold until the program ends.</source>
        <translation>설정을 저장하지 못했습니다({reason}). 프로그램을 끝낼 때까지만 적용됩니다.</translation>
    </message>
    <message>
        <source>Choose…</source>
        <translation>선택…</translation>
    </message>
    <message>
        <source>Choose a model file</source>
        <translation>모델 파일 선택</translation>
    </message>
    <message>
        <source>GGUF models (*.gguf)</source>
        <translation>GGUF 모델(*.gguf)</translation>
    </message>
</context>
<context>
    <name>Shortcuts</name>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>키보드 단축키</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>닫기</translation>
    </message>
    <message>
        <source>Send the message</source>
        <translation>메시지 보내기</translation>
    </message>
    <message>
        <source>A new line in the message</source>
        <translation>메시지에서 줄 바꾸기</translation>
    </message>
    <message>
        <source>Stop the answer</source>
        <translation>답변 중지</translation>
    </message>
    <message>
        <source>New conversation</source>
        <translation>새 대화</translation>
    </message>
    <message>
        <source>Search all conversations</source>
        <translation>모든 대화에서 검색</translation>
    </message>
    <message>
        <source>Next conversation</source>
        <translation>다음 대화</translation>
    </message>
    <message>
        <source>Previous conversation</source>
        <translation>이전 대화</translation>
    </message>
    <message>
        <source>Rename the conversation</source>
        <translation>대화 이름 바꾸기</translation>
    </message>
    <message>
        <source>Delete the conversation</source>
        <translation>대화 삭제</translation>
    </message>
    <message>
        <source>Show or hide the conversations</source>
        <translation>대화 목록 보기/숨기기</translation>
    </message>
    <message>
        <source>Undo the deletion, in the list of conversations</source>
        <translation>대화 목록에서 삭제 취소</translation>
    </message>
    <message>
        <source>Go to the message</source>
        <translation>메시지 입력란으로 이동</translation>
    </message>
    <message>
        <source>Add text files</source>
        <translation>텍스트 파일 추가</translation>
    </message>
    <message>
        <source>Mode: {name}</source>
        <translation>모드: {name}</translation>
    </message>
    <message>
        <source>Colour answers by where their tokens came from</source>
        <translation>토큰의 출처를 색으로 보기</translation>
    </message>
    <message>
        <source>Show or hide the live figures</source>
        <translation>실시간 수치 보기/숨기기</translation>
    </message>
    <message>
        <source>Show or hide the details of the figures</source>
        <translation>자세한 수치 보기/숨기기</translation>
    </message>
    <message>
        <source>Models and drafters</source>
        <translation>모델과 드래프터</translation>
    </message>
    <message>
        <source>Compare the modes</source>
        <translation>모드 비교</translation>
    </message>
    <message>
        <source>Unload the model</source>
        <translation>모델 내리기</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>설정</translation>
    </message>
    <message>
        <source>Larger text</source>
        <translation>글자 크게</translation>
    </message>
    <message>
        <source>Smaller text</source>
        <translation>글자 작게</translation>
    </message>
    <message>
        <source>Usual size of text</source>
        <translation>기본 글자 크기</translation>
    </message>
    <message>
        <source>This list</source>
        <translation>이 목록</translation>
    </message>
</context>
<context>
    <name>Sidebar</name>
    <message>
        <source>Search all conversations</source>
        <translation>모든 대화에서 검색</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>검색</translation>
    </message>
    <message>
        <source>Clear the search</source>
        <translation>검색 지우기</translation>
    </message>
    <message>
        <source>Import and export</source>
        <translation>가져오기와 내보내기</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>되돌리기</translation>
    </message>
    <message>
        <source>Undo the deletion</source>
        <translation>삭제 되돌리기</translation>
    </message>
    <message>
        <source>Nothing was found.</source>
        <translation>찾은 것이 없습니다.</translation>
    </message>
    <message>
        <source>Your conversations will be listed here.</source>
        <translation>대화가 여기에 표시됩니다.</translation>
    </message>
    <message>
        <source>“{title}” was deleted.</source>
        <translation>“{title}” 대화를 삭제했습니다.</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>이름 바꾸기</translation>
    </message>
    <message>
        <source>Unpin</source>
        <translation>고정 해제</translation>
    </message>
    <message>
        <source>Pin</source>
        <translation>고정</translation>
    </message>
    <message>
        <source>Export…</source>
        <translation>내보내기…</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>삭제</translation>
    </message>
    <message>
        <source>Import…</source>
        <translation>가져오기…</translation>
    </message>
    <message>
        <source>Export all…</source>
        <translation>모두 내보내기…</translation>
    </message>
    <message>
        <source>Conversations</source>
        <translation>대화</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>내보내기</translation>
    </message>
    <message>
        <source>Exported conversations</source>
        <translation>내보낸 대화</translation>
    </message>
    <message>
        <source>Import</source>
        <translation>가져오기</translation>
    </message>
    <message>
        <source>Pinned</source>
        <translation>고정됨</translation>
    </message>
    <message>
        <source>Today</source>
        <translation>오늘</translation>
    </message>
    <message>
        <source>Yesterday</source>
        <translation>어제</translation>
    </message>
    <message>
        <source>Previous 7 days</source>
        <translation>지난 7일</translation>
    </message>
    <message>
        <source>Previous 30 days</source>
        <translation>지난 30일</translation>
    </message>
    <message>
        <source>Earlier</source>
        <translation>이전</translation>
    </message>
    <message>
        <source>Title</source>
        <translation>제목</translation>
    </message>
</context>
<context>
    <name>Status</name>
    <message>
        <source>Stopping the load</source>
        <translation>불러오기를 멈추는 중</translation>
    </message>
    <message>
        <source>Starting the engine</source>
        <translation>엔진을 시작하는 중</translation>
    </message>
    <message>
        <source>Waiting for the engine</source>
        <translation>엔진을 기다리는 중</translation>
    </message>
    <message>
        <source>Stopping</source>
        <translation>멈추는 중</translation>
    </message>
    <message>
        <source>Reading the prompt again, for the drafter: {done} of {total} tokens</source>
        <translation>드래프터를 위해 프롬프트를 다시 읽는 중: {total}토큰 중 {done}토큰</translation>
    </message>
    <message>
        <source>Reading the prompt: {done} of {total} tokens</source>
        <translation>프롬프트를 읽는 중: {total}토큰 중 {done}토큰</translation>
    </message>
    <message>
        <source>Answering</source>
        <translation>답변하는 중</translation>
    </message>
    <message>
        <source>No model is loaded</source>
        <translation>불러온 모델이 없습니다</translation>
    </message>
    <message>
        <source>The engine has stopped</source>
        <translation>엔진이 멈췄습니다</translation>
    </message>
    <message>
        <source>Ready</source>
        <translation>준비됨</translation>
    </message>
    <message>
        <source>Waits until “{title}” is answered.</source>
        <translation>“{title}” 대화의 답변이 끝나기를 기다립니다.</translation>
    </message>
    <message>
        <source>Loading was stopped.</source>
        <translation>불러오기를 중지했습니다.</translation>
    </message>
    <message>
        <source>Load</source>
        <translation>불러오기</translation>
    </message>
    <message>
        <source>The model could not be loaded</source>
        <translation>모델을 불러오지 못했습니다</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>다시 시도</translation>
    </message>
    <message>
        <source>That did not work</source>
        <translation>실패했습니다</translation>
    </message>
    <message>
        <source>Its memory has been given back.</source>
        <translation>메모리를 돌려주었습니다.</translation>
    </message>
    <message>
        <source>The engine stopped. Your text is kept.</source>
        <translation>엔진이 멈췄습니다. 글은 남아 있습니다.</translation>
    </message>
    <message>
        <source>Restart and go on</source>
        <translation>다시 시작하고 이어 쓰기</translation>
    </message>
    <message>
        <source>Restart</source>
        <translation>다시 시작</translation>
    </message>
    <message>
        <source>Loading the target</source>
        <translation>타깃 모델을 불러오는 중</translation>
    </message>
    <message>
        <source>Loading the drafter</source>
        <translation>드래프터를 불러오는 중</translation>
    </message>
    <message>
        <source>Measuring what passes cost on this machine</source>
        <translation>이 컴퓨터에서 패스의 비용을 재는 중</translation>
    </message>
    <message>
        <source>Preparing a faster copy of the model, this once</source>
        <translation>모델의 더 빠른 사본을 만드는 중(처음 한 번만)</translation>
    </message>
    <message>
        <source>Loading: {part}</source>
        <translation>불러오는 중: {part}</translation>
    </message>
</context>
<context>
    <name>Store</name>
    <message>
        <source>Conversations cannot be stored at the moment ({reason}); make room or check the folder.</source>
        <translation>지금은 대화를 저장할 수 없습니다({reason}). 공간을 확보하거나 폴더를 확인하십시오.</translation>
    </message>
    <message>
        <source>Conversations of this session will not be kept: {file} cannot be written ({reason}).</source>
        <translation>{file}에 쓸 수 없어({reason}) 이번 대화는 남지 않습니다.</translation>
    </message>
    <message>
        <source>The conversations were last written by a newer version of this program and are left as they are; update the program to see them. New ones are kept in {file}.</source>
        <translation>대화를 이 프로그램의 더 새로운 버전이 저장했으므로 그대로 둡니다. 보려면 프로그램을 업데이트하십시오. 새 대화는 {file}에 저장합니다.</translation>
    </message>
    <message>
        <source>Recovered conversation</source>
        <translation>복구된 대화</translation>
    </message>
    <message>
        <source>Conversations that the list had lost are in it again: {count}.</source>
        <translation>목록에서 빠졌던 대화를 다시 넣었습니다: {count}개.</translation>
    </message>
    <message>
        <source>The file of conversations was damaged ({reason}). What could be read of it is here (conversations: {conversations}, messages: {messages}); the damaged file is kept as {file}.</source>
        <translation>대화 파일이 손상되었습니다({reason}). 읽어 낸 것은 여기에 있습니다(대화 {conversations}개, 메시지 {messages}개). 손상된 파일은 {file}에 남겨 두었습니다.</translation>
    </message>
    <message>
        <source>Damaged messages in “{title}”: {count}. They were set aside in the table “damaged” of {file}.</source>
        <translation>“{title}” 대화에서 손상된 메시지: {count}개. {file}의 “damaged” 표로 옮겨 두었습니다.</translation>
    </message>
    <message>
        <source>Conversations met an error that is not known ({reason}); please report it.</source>
        <translation>대화를 다루다 알 수 없는 오류가 났습니다({reason}). 알려 주시기 바랍니다.</translation>
    </message>
</context>
<context>
    <name>Tasks</name>
    <message>
        <source>The program met an error that it does not know ({error}); please report it.</source>
        <translation>알 수 없는 오류가 났습니다({error}). 알려 주시기 바랍니다.</translation>
    </message>
</context>
<context>
    <name>Tokens</name>
    <message>
        <source>Where this came from was not kept.</source>
        <translation>이 토큰의 출처는 저장되지 않았습니다.</translation>
    </message>
    <message>
        <source>Chosen by the target itself</source>
        <translation>타깃 모델이 직접 고름</translation>
    </message>
    <message>
        <source>Drafted at position {position}, and accepted</source>
        <translation>위치 {position}에서 드래프트되어 수락됨</translation>
    </message>
    <message>
        <source>Answer, token by token</source>
        <translation>토큰별 답변</translation>
    </message>
    <message>
        <source>What the colours mean</source>
        <translation>색의 뜻</translation>
    </message>
    <message>
        <source>Plain words were chosen by the target itself. Coloured ones were drafted and accepted; the colour is the position in the block. Point at a word to see what else the target considered there.</source>
        <translation>색이 없는 낱말은 타깃 모델이 직접 골랐습니다. 색이 있는 낱말은 드래프트되어 수락된 것으로, 색은 블록 안의 위치를 나타냅니다. 낱말을 가리키면 타깃 모델이 그 자리에서 고려한 다른 토큰이 보입니다.</translation>
    </message>
</context>
<context>
    <name>Transfer</name>
    <message>
        <source>{file} cannot be read ({reason}); choose another file.</source>
        <translation>{file} 파일을 읽을 수 없습니다({reason}). 다른 파일을 고르십시오.</translation>
    </message>
    <message>
        <source>{file} is no text file; choose one that this program has exported.</source>
        <translation>{file}은(는) 텍스트 파일이 아닙니다. 이 프로그램에서 내보낸 파일을 고르십시오.</translation>
    </message>
    <message>
        <source>{file} was exported by a newer version of this program; update the program.</source>
        <translation>{file}은(는) 이 프로그램의 더 새로운 버전에서 내보낸 파일입니다. 프로그램을 업데이트하십시오.</translation>
    </message>
    <message>
        <source>{file} holds a conversation this program cannot read ({reason}); export it again.</source>
        <translation>{file}에 이 프로그램이 읽을 수 없는 대화가 있습니다({reason}). 다시 내보내십시오.</translation>
    </message>
    <message>
        <source>{file} cannot be written ({reason}); choose another place.</source>
        <translation>{file} 파일에 쓸 수 없습니다({reason}). 다른 위치를 고르십시오.</translation>
    </message>
    <message>
        <source>{file} holds no conversations; choose a file that this program has exported.</source>
        <translation>{file}에는 대화가 없습니다. 이 프로그램에서 내보낸 파일을 고르십시오.</translation>
    </message>
    <message>
        <source>{file} is damaged or was cut off; export it again.</source>
        <translation>{file} 파일이 손상되었거나 잘렸습니다. 다시 내보내십시오.</translation>
    </message>
    <message>
        <source>Conversations written to {file}: {count}.</source>
        <translation>{file}에 내보낸 대화: {count}개.</translation>
    </message>
    <message>
        <source>Conversations read before the file was found to be damaged: {count}. {reason}</source>
        <translation>파일이 손상된 것을 알기 전까지 가져온 대화: {count}개. {reason}</translation>
    </message>
    <message>
        <source>Conversations read from {file}: {count}.</source>
        <translation>{file}에서 가져온 대화: {count}개.</translation>
    </message>
</context>
<context>
    <name>Welcome</name>
    <message>
        <source>Write a haiku about rain.</source>
        <translation>비에 관한 하이쿠를 써 주세요.</translation>
    </message>
    <message>
        <source>Why is the sky blue?</source>
        <translation>하늘은 왜 파란가요?</translation>
    </message>
    <message>
        <source>Write a Python function that reverses a list.</source>
        <translation>리스트를 뒤집는 Python 함수를 작성해 주세요.</translation>
    </message>
    <message>
        <source>The model works alone and writes one token per pass.</source>
        <translation>모델이 혼자 일하며 패스마다 토큰 하나를 씁니다.</translation>
    </message>
    <message>
        <source>A small drafter proposes a whole block of tokens, and the model checks them all in one pass.</source>
        <translation>작은 드래프터가 토큰 한 블록을 한꺼번에 제안하고, 모델이 한 번의 패스로 모두 확인합니다.</translation>
    </message>
    <message>
        <source>The drafter also picks words that follow each other, so that more of them are accepted.</source>
        <translation>드래프터가 서로 이어지는 말까지 골라서 더 많은 토큰이 수락됩니다.</translation>
    </message>
    <message>
        <source>What would you like to know?</source>
        <translation>무엇이 궁금하십니까?</translation>
    </message>
    <message>
        <source>The model runs on this computer. Nothing you write leaves it.</source>
        <translation>모델은 이 컴퓨터에서 실행됩니다. 입력한 글은 밖으로 나가지 않습니다.</translation>
    </message>
    <message>
        <source>Example: {text}</source>
        <translation>예: {text}</translation>
    </message>
    <message>
        <source>All three give the same answer; only the speed differs.</source>
        <translation>세 모드의 답변은 같고 속도만 다릅니다.</translation>
    </message>
</context>
<context>
    <name>Window</name>
    <message>
        <source>The settings were set back</source>
        <translation>설정을 되돌렸습니다</translation>
    </message>
    <message>
        <source>Conversations</source>
        <translation>대화</translation>
    </message>
    <message>
        <source>Show or hide the conversations (Ctrl+B)</source>
        <translation>대화 목록 보기/숨기기(Ctrl+B)</translation>
    </message>
    <message>
        <source>New conversation</source>
        <translation>새 대화</translation>
    </message>
    <message>
        <source>New conversation (Ctrl+N)</source>
        <translation>새 대화(Ctrl+N)</translation>
    </message>
    <message>
        <source>Live figures</source>
        <translation>실시간 수치</translation>
    </message>
    <message>
        <source>Show or hide the live figures (Ctrl+I)</source>
        <translation>실시간 수치 보기/숨기기(Ctrl+I)</translation>
    </message>
    <message>
        <source>Where tokens came from</source>
        <translation>토큰의 출처</translation>
    </message>
    <message>
        <source>Colour answers by where their tokens came from (Ctrl+T)</source>
        <translation>토큰의 출처를 색으로 보기(Ctrl+T)</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>Models and drafters (Ctrl+M)</source>
        <translation>모델과 드래프터(Ctrl+M)</translation>
    </message>
    <message>
        <source>Compare</source>
        <translation>비교</translation>
    </message>
    <message>
        <source>Compare the modes (Ctrl+Shift+C)</source>
        <translation>모드 비교(Ctrl+Shift+C)</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>설정</translation>
    </message>
    <message>
        <source>Settings (Ctrl+,)</source>
        <translation>설정(Ctrl+,)</translation>
    </message>
    <message>
        <source>The answer is done: {tokens} tokens.</source>
        <translation>답변이 끝났습니다. {tokens}토큰입니다.</translation>
    </message>
    <message>
        <source>The model is ready.</source>
        <translation>모델이 준비되었습니다.</translation>
    </message>
    <message>
        <source>{count} parameters</source>
        <translation>매개변수 {count}</translation>
    </message>
</context>
</TS>
