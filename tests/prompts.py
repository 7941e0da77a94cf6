"""Forty-two prompts a person might ask, six of each kind; for comparisons on the real model."""

from __future__ import annotations

PROMPTS: dict[str, tuple[str, ...]] = {
    "code": (
        "Write a Python function that returns the second largest number in a list.",
        "Show me a small HTML page with a heading, a paragraph and a button.",
        "How do I read a CSV file in Python and sum one of its columns?",
        "Write a SQL query that lists the ten customers with the highest total orders.",
        "Explain this code: for i in range(3): print(i * i)",
        "Write a bash one-liner that counts the lines of every .txt file in a folder.",
    ),
    "mathematics": (
        "A train goes 180 km in 2.5 hours. What is its average speed?",
        "What is 17 times 23? Show the steps.",
        "Explain the Pythagorean theorem with an example.",
        "If I save 40 dollars a week, how long until I have 1000 dollars?",
        "Solve the equation 3x + 7 = 25 for x.",
        "What is the difference between the mean and the median?",
    ),
    "chat": (
        "Hi! I have a job interview tomorrow and I am nervous. Any advice?",
        "What should I cook tonight with potatoes, eggs and onions?",
        "My cat keeps waking me at five in the morning. What can I do?",
        "Recommend three things to do on a rainy Sunday.",
        "How do I apologise to a friend I forgot to call on her birthday?",
        "Is it better to learn the piano or the guitar first?",
    ),
    "summarising": (
        (
            "Summarise in one sentence: The library will close at six instead of eight from Monday on, because "
            "the heating is being replaced. Books can still be returned at the box beside the door at any time."
        ),
        (
            "Give me the three main points: Bees visit flowers for nectar and carry pollen from one to the next. "
            "Without them many fruits would not grow. Pesticides and the loss of meadows have made them rarer in "
            "many regions."
        ),
        (
            "Shorten this to ten words: We are writing to let you know that the parcel you ordered last week has "
            "been delayed by bad weather and will now arrive on Thursday afternoon."
        ),
        "Write a title for a text about how tides are caused by the pull of the moon and the sun.",
        "Summarise the story of the tortoise and the hare for a child.",
        (
            "What is the main message of this: Sleep is when the brain sorts what it learned. Those who sleep too"
            " little remember less and make more mistakes."
        ),
    ),
    "extraction": (
        "Extract the date and the place: The meeting is on 14 March at the town hall in Leiden.",
        "List the ingredients mentioned: Mix two eggs with flour, add milk, a pinch of salt and a spoon of sugar.",
        "Which animals are named here? A fox watched the hens while the dog slept beside an old horse.",
        "Give the name and the phone number as JSON: Please ask for Mira Okafor, her number is 555-0142.",
        "Is this review positive or negative? The soup was cold and nobody came to take our order for an hour.",
        "Put these words in alphabetical order: pear, apple, cherry, banana.",
    ),
    "stories": (
        "Tell me a short story about a lighthouse keeper who finds a letter in a bottle.",
        "Write the first paragraph of a detective story set in a bakery.",
        "Write a poem of eight lines about the first snow of the year.",
        "Invent a dialogue between the sun and the moon.",
        "Write a story about a robot that is afraid of the dark.",
        "Describe an old harbour at dawn.",
    ),
    "korean": (
        "안녕하세요! 자기소개를 해 주세요.",
        "한국의 수도는 어디인가요?",
        "비 오는 날에 대한 짧은 시를 써 주세요.",
        "아침에 일찍 일어나는 방법을 알려 주세요.",
        "Translate into Korean: Good morning, how are you?",
        "김치는 무엇으로 만드나요?",
    ),
}
