"""Texts that the golden files are made from, written for this purpose."""

# Everyday sentences in many scripts.
SENTENCES = [
    "The quick brown fox can't jump over the lazy dogs; it's 12.50 o'clock, isn't it?",
    "She'd said they'll arrive by 07:45, but we've waited 3 hours and I'm tired.",
    "Über den Wolken muß die Freiheit grenzenlos gewesen sein – größer als Weißensee.",
    "L'été dernier, j'ai mangé des crêpes à Orléans ; c'était délicieux, n'est-ce pas ?",
    "¿Dónde está el niño? ¡Aquí, señora! Mañana cumplirá diez años.",
    "Amanhã não haverá pão nem açúcar na região, disse o irmão João.",
    "Perché non vieni con noi? Più tardi andrò all'università.",
    "Het zeeëgeltje en de coördinatie van één café in IJmuiden.",
    "Åsa älskar öar; smørrebrød på en blå tallerken, sagde Søren.",
    "Þetta er fallegur dagur og ég ætla að ganga á fjallið.",
    "Zażółć gęślą jaźń, powiedział Łukasz do Małgorzaty.",
    "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "Árvíztűrő tükörfúrógép, mondta az öreg hölgy.",
    "İstanbul'da ılık bir güz günü; çocuklar şeker yiyor.",
    "Šiandien oras gražus, žąsys skrenda į pietus.",
    "Sáng nay tôi uống cà phê sữa đá ở phố cổ Hà Nội.",
    "Съешь ещё этих мягких французских булок, да выпей чаю.",
    "Вчора її ґудзик загубився біля під'їзду.",
    "Љубичаста њива и џеп пун ђинђува.",
    "Ο καιρός σήμερα είναι πολύ καλός, είπε ο Οδυσσέας.",
    "Գարունը եկավ և ծառերը ծաղկեցին։",
    "გაზაფხული მოვიდა და ხეები აყვავდა.",
    "שלום עולם, מה שלומך היום? הכול בסדר.",
    "בְּרֵאשִׁית הָיָה הַדָּבָר",
    "السلام عليكم، كيف حالك اليوم؟ لديّ ٣٤ كتابًا.",
    "سلام، امروز هوا خیلی خوب است و می‌خواهم بیرون بروم.",
    "آپ کیسے ہیں؟ میں ٹھیک ہوں۔",
    "नमस्ते दुनिया, आज मौसम बहुत अच्छा है। क्षत्रिय ज्ञान १२३",
    "আজ আকাশ খুব নীল, আমি বাংলায় লিখি।",
    "ਸਤ ਸ੍ਰੀ ਅਕਾਲ, ਤੁਸੀਂ ਕਿਵੇਂ ਹੋ?",
    "આજે હવામાન સરસ છે.",
    "வணக்கம் உலகம், இன்று மழை பெய்கிறது.",
    "నమస్కారం, మీరు ఎలా ఉన్నారు?",
    "ನಮಸ್ಕಾರ, ಇಂದು ಮಳೆ ಬರುತ್ತಿದೆ.",
    "നമസ്കാരം, സുഖമാണോ?",
    "ආයුබෝවන්, ඔබට කොහොමද?",
    "สวัสดีชาวโลก วันนี้อากาศดีมาก ราคา ๒๕๐ บาท",
    "ສະບາຍດີ ມື້ນີ້ອາກາດດີ",
    "မင်္ဂလာပါ နေကောင်းလား။",
    "សួស្តី តើអ្នកសុខសប្បាយទេ?",
    "བཀྲ་ཤིས་བདེ་ལེགས།",
    "ሰላም ለሁሉም፣ እንዴት ናችሁ?",
    "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ",
    "ᐃᓄᒃᑎᑐᑦ ᐅᖃᐅᓯᖅ",
    "今天天气很好,我们去公园散步吧。价格是128元!",
    "繁體中文與簡體中文的差異:憂鬱的臺灣烏龜。",
    "吾輩は猫である。名前はまだ無い。コンピューターで１２３を計算する。",
    "ｶﾀｶﾅ半角とひらがな、ヴァイオリン〜♪",
    "안녕하세요, 오늘 날씨가 좋네요. 한국어 문장입니다.",
    "각하 ㄱㄴㄷ ㅏㅑㅓ",
    "Сайн байна уу? ᠮᠣᠩᠭᠣᠯ ᠪᠢᠴᠢᠭ",
    "ޝުކުރިއްޔާ ދިވެހި",
    "Ɛyɛ me dɛ sɛ mahyia wo. Ńjẹ́ o wà dáadáa?",
    "ʻŌlelo Hawaiʻi, Māori, fa'afetai, x̱átl",
    "𝒯𝒽𝒾𝓈 𝕚𝕤 𝖋𝖆𝖓𝖈𝖞 𝟏𝟐𝟑 ｆｕｌｌｗｉｄｔｈ",
    "𐌰𐌱𐌲 𐤀𐤁𐤂 𓀀𓁐 𒀀𒁀 🀄🂡",
    "∀x∈ℝ: ⌈x⌉ = −⌊−x⌋, ∑ᵢ₌₁ⁿ i² ≤ ∞ ± √2 ≠ π·10⁻³",
    "€5, £7, ¥900, ₹1,000, ₿0.5, 20 °C, 5′ 11″, ½ cup, № 7, © ™ ®, § 12, ¶, †",
]

# Source text in several languages.
CODE = [
    '''def fib(n: int) -> int:
    """Return the n-th Fibonacci number."""
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


if __name__ == "__main__":
    print([fib(i) for i in range(10)], end="\\n\\t")
''',
    '''#include <vector>
template <typename T, size_t N = 8>
class Ring final {
 public:
  explicit Ring(T&& first) noexcept : data_{std::move(first)} {}
  T* operator->() { return &data_[head_++ % N]; }  // wraps
 private:
  std::array<T, N> data_; uint64_t head_ = 0x1F'FFULL;
};
''',
    '''fn main() -> Result<(), Box<dyn Error>> {
    let xs: Vec<_> = (0..=9).filter(|x| x % 2 == 0).collect();
    println!("{xs:?} {:>8.3}", 3.14159_f64);
    match xs.first() { Some(&v) if v > 0 => todo!(), _ => Ok(()) }
}
''',
    '''package main

import "fmt"

func main() {
\tch := make(chan int, 3)
\tgo func() { defer close(ch); for i := 0; i < 3; i++ { ch <- i } }()
\tfor v := range ch {
\t\tfmt.Printf("%d\\n", v)
\t}
}
''',
    '''const f = async ({a, b = `x${1 + 1}`, ...rest}) => {
  const r = await fetch(`/api/v1/items?id=${a}&q=${encodeURIComponent(b)}`);
  return r.ok ? (await r.json())?.data ?? null : /^\\s*(\\d+)$/gi.test(b);
};
''',
    '''SELECT u.id, COUNT(*) AS n, MAX(o.created_at)
  FROM users u LEFT JOIN orders o ON o.user_id = u.id
 WHERE u.email LIKE '%@example.com' AND o.total >= 99.95
 GROUP BY 1 HAVING COUNT(*) > 3 ORDER BY n DESC LIMIT 10; -- top ten
''',
    '''{"name": "baton", "version": [1, 2.5e-3, null, true], "nested": {"k\\u00e9y": "v\\"q\\"", "emoji": "\U0001F680"}}
''',
    '''apiVersion: v1
kind: ConfigMap
metadata:
  name: cfg
data:
  key: |
    line one
      line two
  list: [a, b, "c: d"]
''',
    '''<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"/><title>A &amp; B</title></head>
<body class="x y"><p style="color:#ff8800">Hi&nbsp;<b>there</b></p><!-- end --></body></html>
''',
    '''#!/bin/sh
set -eu
for f in *.txt; do [ -f "$f" ] && sed -e 's/foo\\(.*\\)/bar\\1/g' "$f" | awk '{print $2}' > "${f%.txt}.out" 2>&1; done
''',
    '''\\begin{equation}\\label{eq:1}
  \\int_{-\\infty}^{\\infty} e^{-x^2}\\,dx = \\sqrt{\\pi} % Gauss
\\end{equation}
''',
    '''diff --git a/x.c b/x.c
@@ -1,3 +1,4 @@
-int x=1;
+int x = 2;\t/* tab */
 return x<<3|~y&&!z;
''',
    "(defun sq (x) (* x x)) ; lisp\n(mapcar #'sq '(1 2 3))\n",
    "main :: IO ()\nmain = mapM_ print $ takeWhile (<100) [x^2 | x <- [1..], odd x]\n",
    "    def  indented(self):\r\n\t    return  {**self.a,\t'b':1}\r\n\r\n\r\n",
    "https://example.org:8080/a/b%20c?x=1&y=%E2%82%AC#frag mailto:jo.do+tag@mail.example.co.uk C:\\\\Users\\\\me\\\\file.txt",
    "2024-02-29T23:59:60.123456Z, +1 (555) 010-9999, 192.168.0.1/24, fe80::1%eth0, 0xDEADBEEF, 1e-10, 1_000_000",
    "| a | b |\n|---|:-:|\n| **x** | `y` |\n\n- [ ] todo\n  1. one\n\n> quote\n\n```python\nprint(1)\n```\n",
]

# About 1,500 tokens of plain English and code for teacher forcing.
PASSAGE = '''The lighthouse keeper's notebook

On the first morning of autumn the keeper climbed the tower before sunrise, as he had done every day for thirty-one years. The stairs were cold, and the iron rail left a smell of rust on his hands. At the top he trimmed the lamp, cleaned the glass, and wrote three lines in his notebook: the direction of the wind, the height of the tide, and the number of ships that he could see. That morning the wind came from the north-west, the tide was low, and there were no ships at all.

He had learned to read the water the way other people read a newspaper. A dark band near the horizon meant rain before noon. A pale green stripe along the sandbank meant that the current had turned early. When gulls sat on the rocks and did not fly, he closed the shutters, because a storm was less than six hours away. None of this was written in any manual. His daughter, who studied physics in the city, once asked him how often these signs were right. He opened the notebook, counted for a while, and answered: "Nine times out of ten. The tenth time, the sea is teaching me something."

In the afternoon a small boat came around the point. Two people were in it, and one of them was waving a yellow coat. The keeper took the binoculars from the shelf and saw that the motor had stopped and that the boat was drifting towards the shallow water. He rang the bell twice, ran down the stairs, and pushed his own boat into the waves. It took him twenty minutes to reach them. The older of the two was a teacher from the village; the younger one, perhaps twelve years old, held a glass jar with a living crab inside.

"We wanted to measure how fast it grows," the boy explained while they were towed back to the pier. "Every week we weigh it, and then we let it go again. Last week it weighed forty-two grams."

"And this week?" asked the keeper.

"This week we forgot to check the fuel," said the teacher.

They drank tea in the kitchen until their clothes were dry. The keeper showed the boy his notebooks, a whole wall of them, one for each year. The boy read a few pages and was quiet for a long time. Then he asked whether anyone had ever put all those numbers into a computer. Nobody had. So they made a plan: every Saturday the boy would come with the teacher, type in one month of observations, and draw a chart of the wind and the tide. In return, the keeper would teach him how to row.

How the program works

The first version of the program was very simple. It read a text file in which every line held a date, a wind direction, a wind speed in knots, and the height of the tide in centimetres. It ignored lines that it could not understand and counted them, so that mistakes in typing were not lost silently.

```python
import csv
from collections import defaultdict
from dataclasses import dataclass


@dataclass
class Observation:
    date: str
    direction: str
    knots: float
    tide_cm: int


def read_observations(path):
    """Reads one month of observations and counts the lines that are wrong."""
    observations = []
    errors = 0
    with open(path, newline="") as file:
        for row in csv.reader(file):
            try:
                date, direction, knots, tide = row
                observations.append(Observation(date, direction, float(knots), int(tide)))
            except ValueError:
                errors += 1
    return observations, errors


def mean_speed_by_direction(observations):
    total = defaultdict(float)
    count = defaultdict(int)
    for o in observations:
        total[o.direction] += o.knots
        count[o.direction] += 1
    return {d: total[d] / count[d] for d in total}


if __name__ == "__main__":
    observations, errors = read_observations("september.csv")
    print(f"{len(observations)} observations, {errors} lines could not be read")
    for direction, speed in sorted(mean_speed_by_direction(observations).items()):
        print(f"{direction:>3}: {speed:5.1f} knots")
```

The result surprised them. The strongest winds did not come from the west, as everybody in the village believed, but from the south-east, and nearly always in the two days after a full moon. The teacher said that this could be a coincidence, because thirty observations are not many. "To be sure," she explained, "we need at least ten years. If the pattern is real, it will become clearer with every year that we add. If it is not, it will slowly disappear."

Winter came. The boy learned to row, first in the harbour and then outside it. He also learned that a number without a unit is worth nothing, that a missing value is not the same as zero, and that it is better to write down what you see than what you expect to see. By March they had typed in eleven years. The pattern had not disappeared.

A faster version

Reading all the files again each time took almost a minute, so the boy's cousin, who worked as an engineer, rewrote the inner part in C++. She kept the observations sorted by date and stored the running sums, so that the mean of any period could be computed with one subtraction:

```cpp
#include <cstddef>
#include <vector>

// Sums of the first n values, so that the sum of any range takes constant time.
class PrefixSums {
 public:
  explicit PrefixSums(const std::vector<double>& values) {
    sums_.reserve(values.size() + 1);
    sums_.push_back(0.0);
    for (double value : values) {
      sums_.push_back(sums_.back() + value);
    }
  }

  // The mean of values[first, last). The range must not be empty.
  double Mean(std::size_t first, std::size_t last) const {
    return (sums_[last] - sums_[first]) / static_cast<double>(last - first);
  }

 private:
  std::vector<double> sums_;
};
```

"Does it give the same answer as the old one?" asked the keeper when he saw it. It was a good question. They compared the two programs for every month and found one difference, in February 1996. The old program had skipped the 29th, because somebody had typed the letter O instead of a zero. They corrected the file, ran both programs again, and this time the numbers agreed to the last digit.

In the spring a scientist from the university came to visit. She looked at the charts, asked many careful questions, and finally wanted to know who had designed the experiment. The boy pointed at the keeper, the keeper pointed at the teacher, and the teacher pointed at the crab, which was sitting in its jar on the window sill and weighed, by then, one hundred and seven grams.
'''

# Prompts for greedy continuations.
PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a small village by the sea,",
    "def quicksort(xs):\n    \"\"\"Sort a list of numbers.\"\"\"\n",
    "Question: What is the boiling point of water at sea level?\nAnswer:",
    "1, 1, 2, 3, 5, 8, 13,",
    "Dear Mr. Johnson,\n\nThank you for your letter of",
    "The three states of matter are",
    "#include <stdio.h>\n\nint main(void) {\n",
    "Roses are red,\nviolets are blue,\n",
    "In 1969, the first human being walked on the",
    "To make a good cup of tea, first",
    "import numpy as np\n\nx = np.linspace(0, 1, 100)\n",
    "The mitochondrion is often called",
    "Translate to French: Good morning, my friend.\n",
    "A list of the planets in order from the sun:\n1.",
    "SELECT name, price FROM products WHERE",
    "It was a dark and stormy night; the rain fell in torrents",
    "Die Hauptstadt von Deutschland ist",
    "If a train leaves at 3 pm and travels for two hours, it arrives at",
    "function add(a, b) {",
    "\"I don't believe you,\" she said, \"because",
    "The theory of evolution by natural selection was proposed by",
    "Ingredients:\n- 200 g flour\n- 2 eggs\n-",
    "The difference between a list and a tuple in Python is that",
]

# The same questions as a chat, for models with ChatML.
CHATS = [
    "What is the capital of Italy?",
    "Write a short poem about the sea.",
    "Explain in one sentence why the sky is blue.",
    "List three fruits.",
]
