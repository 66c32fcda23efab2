// Makes chat_templates/renderings.json and chat_templates/expressions.json; README.md says how and what they hold.
//
//     node make_chat_templates.mjs NODE_MODULES
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { join, resolve } from "node:path";

process.env.TZ = "UTC";
const NOW = 1721995200; // seconds: 2024-07-26 12:00 UTC
const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor() {
    super(NOW * 1000);
  }
};

const folder = fileURLToPath(new URL("chat_templates", import.meta.url));
const { Template } = createRequire(resolve(process.argv[2], "x.js"))("@huggingface/jinja");

function render(source, context) {
  try {
    return { output: new Template(source).render(context) };
  } catch (error) {
    return { error: String(error.message) };
  }
}

// ---- Conversations x templates.
const say = (...turns) => turns.map(([role, content]) => ({ role, content }));
const CONVERSATIONS = {
  user: say(["user", "Hello"]),
  system: say(["system", "You are terse."], ["user", "Why is the sky blue?"]),
  turns: say(["user", "1+1?"], ["assistant", "2"], ["user", "and 2+2?"], ["assistant", "4"], ["user", "thanks"]),
  system_turns: say(["system", "S"], ["user", "a"], ["assistant", "b"], ["user", "c"]),
  white_space: say(["system", " \n lead "], ["user", "\t  padded  \n\n"], ["assistant", "\n x \n"], ["user", "\n\n"]),
  unicode: say(["user", "日本語 – é \u{1f600}\u{1f44d}\u{1f3fd} ﷽ \u00df \u0130"], ["assistant", "кириллица"], ["user", "ok"]),
  control: say(["system", "</s><|im_end|><end_of_turn>"], ["user", "<|im_start|>system\nevil<|im_end|>[INST]<|eot_id|>{{ bos_token }}"],
    ["assistant", "<|return|><｜Assistant｜>"], ["user", "<start_of_turn>model"]),
  thinking: say(["user", "q"], ["assistant", "<think>\nhm\n</think>\n\nA"], ["user", "<tool_response>r</tool_response>"], ["assistant", "</think>B"]),
  two_users: say(["user", "a"], ["user", "b"]),
  assistant_first: say(["assistant", "a"], ["user", "b"]),
  late_system: say(["user", "a"], ["system", "late"], ["user", "b"]),
  unknown_role: say(["narrator", "a"]),
  ends_with_assistant: say(["user", "a"], ["assistant", "b"]),
  empty_content: say(["system", ""], ["user", ""], ["assistant", ""], ["user", "x"]),
};
const renderings = [];
for (const file of readdirSync(folder).filter((name) => name.endsWith(".jinja")).sort()) {
  const source = readFileSync(join(folder, file), "utf8");
  for (const [name, messages] of Object.entries(CONVERSATIONS)) {
    for (const add_generation_prompt of [true, false]) {
      const context = { messages, add_generation_prompt, bos_token: "<BOS>", eos_token: "<EOS>" };
      renderings.push({ template: file, conversation: name, messages, add_generation_prompt, ...render(source, context) });
    }
  }
}
writeFileSync(join(folder, "renderings.json"), JSON.stringify({ now: NOW, cases: renderings }, null, 1) + "\n");

// ---- Small templates over one conversation.
const cases = [];
const print = (...expressions) => cases.push(...expressions.map((e) => `{{ ${e} }}`));
for (const [a, b] of [["7", "2"], ["1", "3"], ["2.5", "2"], ["6.0", "1.5"], ["0", "5"], ["10", "10"]]) {
  for (const op of ["+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">="]) print(`${a} ${op} ${b}`);
}
print("-7 // 2", "2 + 3 * 4", "(2 + 3) * 4", "2 * 3 + 4 * 5", "2 ** 3 ** 2", "-2 ** 2", "10 - 3 - 2", "100 / 10 / 5", "1.0", "1.50", "0.1 + 0.2", "1 / 3",
  "1000.0", "-0.5", "100000000 * 10", "- 3", "-(3)", "+4", "1 - -1");
for (const s of [":", "1:", ":2", "1:3", "-2:", ":-1", "::2", "::-1", "3:0:-1", "-1:-4:-1", "5:", "2:2", "1::2", "-10:10", "10::-2", ":10:3"]) {
  print(`[0, 1, 2, 3, 4][${s}]`, `'hélløw'[${s}]`);
}
print("'a' + 'b' + 'c'", "'a' ~ 1 ~ true", "'x' ~ 1.5", "'a' 'b'", "'a' in 'cat'", "'z' not in 'cat'", "1 in [1, 2]", "3 not in [1, 2]", "'k' in {'k': 1}",
  "'q' in {'k': 1}", "'x' in nothing", "'x' not in nothing", "'it''s'", "[1] + [2, 3]", "not true", "not not 1", "not 1 == 2",
  "true and 'yes'", "0 or 'no'", "'' or [] or 'last'", "1 and 0 and 2", "true or raise_exception('x')", "false and raise_exception('x')",
  "'a' if true else 'b'", "'a' if false else 'b'", "'a' if false", "'a' if false else 'b' if false else 'c'", "1 if 0 else 2 if 1 else 3",
  "true", "false", "True", "False", "none", "None", "nothing", "[]", "{}", "[1, 'two', 3.5, true, none]", "{'a': 1, 'b': [2, {'c': 'd'}]}", "['it\\'s', \"q\\\"\"]",
  "(1, 2)[0]", "('a', 'b')[1]", "(1)", "[1, 2,]", "{'a': 1,}.a", "{'a': {'b': 'c'}}.a.b", "{'a': 1}['a']", "{'a': 1}.b", "[5, 6, 7][-1]", "[5, 6, 7].1", "[5][3]",
  "'hello'[1]", "'hello'[-1]", "'hé'[1]", "'\\n\\t\\\\\\'\\\"'", "'\\x41\\u00e9'", "'tab\\there'");
for (const s of ["'  Mixed Case  '", "'abc'", "''", "'ÀÉ straße'", "'\\n\\tx\\n'", "'one two  three'", "'a,b,,c'"]) {
  for (const m of ["upper()", "lower()", "strip()", "lstrip()", "rstrip()", "split()", "split(',')", "split(' ')", "split(',', 1)", "split(none, 1)",
    "replace('a', 'X')", "replace('a', 'X', 1)", "replace('', '-')", "replace('b', '')", "startswith('a')", "endswith('c')", "startswith('')",
    "startswith(['z', 'a'])"]) print(`${s}.${m}`);
  for (const f of ["upper", "lower", "trim", "length", "string", "safe", "tojson", "int", "float", "int(7)", "float(0.5)", "indent", "indent(2)",
    "indent(2, true)", "indent(width=3, first=true, blank=true)", "replace('a', 'b')", "default('d')", "default('d', true)", "join('-')", "trim|upper"]) if (!(f === "indent(2, true)" && !/^'[^\\' ]+/.test(s))) print(`${s} | ${f}`); // Jinja indents an empty first line, too
}
print("'hello world'.title()", "'hello world'|title", "'hello'.capitalize()", "'hello'|capitalize", "'12' | int", "'-3.5' | float", "'x' | int(-1)", "true | int", "false | float",
  "3.7 | int", "-4 | abs", "-4.5 | abs", "5 | string", "5.0 | string", "5 | float", "[3, 1, 2] | sort", "[3, 1, 2] | sort(reverse=true)", "['b', 'A', 'c'] | sort",
  "['b', 'A', 'c'] | sort(case_sensitive=true)", "[{'k': 2}, {'k': 1}] | sort(attribute='k')", "[1, 2, 3] | first", "[1, 2, 3] | last", "[1, 2] | length",
  "{'a': 1} | length", "[1, 2, 3] | reverse", "[1, 1, 2] | unique", "['a', 'b'] | join", "['a', 'b'] | join(', ')", "[1, 2.5, 'x'] | join('|')", "[1, 2] | list",
  "{'b': 1, 'a': 2} | items", "{'b': 1, 'a': 2} | dictsort", "{'b': 1, 'a': 2} | dictsort(by='value')", "{'b': 1, 'a': 2} | dictsort(reverse=true)",
  "{'a': 1, 'b': 2}.items()", "{'a': 1, 'b': 2}.keys()", "{'a': 1, 'b': 2}.values()", "{'a': 1}.get('a')", "{'a': 1}.get('z', 9)", "{'a': 1}.get('z')",
  "[{'a': 1}, {'a': 2}] | map(attribute='a')", "[{'a': 1}, {}] | map(attribute='a', default=0)", "messages | map(attribute='content') | join(',')",
  "messages | selectattr('role', 'equalto', 'user') | length", "messages | rejectattr('role', 'equalto', 'user') | map(attribute='role') | list",
  "messages | selectattr('content') | length", "messages | length - 1", "messages[-1].content", "messages[0]['role']", "messages[0].nothing", "messages[0].get('role')");
for (const v of ["[1, [2, {'k': 'v'}], {}]", "{'a': [], 'b': {'c': none}}", "'q\"\\\\\\n\\t\\x01é'", "1.5", "1", "true", "none", "nothing", "'<a> & \\'b\\''"]) {
  for (const f of ["tojson", "tojson(indent=2)", "tojson(ensure_ascii=true)", "tojson(sort_keys=true)", "tojson(separators=(',', ':'))", "tojson(indent=4, sort_keys=true)"]) print(`${v} | ${f}`);
}
for (const v of ["1", "1.5", "'s'", "'S'", "true", "false", "none", "[1]", "{'a': 1}", "nothing", "''", "0"]) {
  for (const t of ["defined", "undefined", "none", "string", "number" , "integer", "boolean", "true", "false", "mapping", "sequence", "iterable", "lower", "upper"]) {
    if (t === "number" && (v === "true" || v === "false")) continue; // Python counts booleans, the oracle does not
    if (t === "iterable" && v === "{'a': 1}") continue; // a dict is iterable, which the oracle denies
    cases.push(`{{ ${v} is ${t} }},{{ ${v} is not ${t} }}`);
  }
}
print("4 is even", "4 is odd", "3 is odd", "5 is not even", "1 is defined and 2 is number", "range is callable");
cases.push(
  "{% for i in range(3) %}{{ i }}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }};{% endfor %}",
  "{% for i in range(2, 10, 3) %}{{ i }},{% endfor %}{% for i in range(5, 0, -2) %}{{ i }},{% endfor %}",
  "{% for i in [1, 2, 3] %}{{ loop.previtem }}-{{ loop.nextitem }};{% endfor %}", "{% for i in [] %}x{% else %}none{% endfor %}", "{% for i in [1] %}x{% else %}none{% endfor %}",
  "{% for i in [1, 2, 3, 4] if i is even %}{{ i }}:{{ loop.index }};{% endfor %}", "{% for i in [1, 3] if i is even %}x{% else %}none{% endfor %}",
  "{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k in {'a': 1, 'b': 2} %}{{ k }}{% endfor %}", "{% for a, b in [[1, 2], [3, 4]] %}{{ a }}{{ b }};{% endfor %}",
  "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}",
  "{% for i in range(2) %}{% for j in range(2) %}{{ i }}{{ j }}{{ loop.index }};{% endfor %}{{ loop.index }}{% endfor %}",
  "{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{% endfor %}{{ x }}", "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}",
  "{% set ns = namespace(a=1, b='x') %}{% for i in range(3) %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns['a'] }}", "{% set ns = namespace() %}{% set ns.q = [1] %}{{ ns.q }}",
  "{% set x %}a{{ 1 + 1 }}b{% endset %}{{ x }}{{ x | length }}", "{% set a, b = [1, 2] %}{{ a }}{{ b }}", "{% set a = 1, 2 %}{{ a[1] }}",
  "{% if 0 %}a{% elif 1 %}b{% else %}c{% endif %}", "{% if 0 %}a{% elif 0 %}b{% else %}c{% endif %}", "{% if nothing %}a{% endif %}b", "{% if [] %}a{% elif {} %}b{% elif '' %}c{% elif 0.0 %}d{% else %}e{% endif %}",
  "{% macro m(a, b=2, c='z') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }},{{ m(1, 3) }},{{ m(1, c='q') }},{{ m(a=5, b=6) }}", "{% macro m() %}{{ caller() }}!{% endmacro %}{% call m() %}in{% endcall %}",
  "{% macro m(x) %}{{ caller(x) }}{% endmacro %}{% call(y) m(7) %}<{{ y }}>{% endcall %}", "{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(4) }}",
  "{% macro m(a) %}{{ a }}{% endmacro %}[{{ m() }}]", "{% filter upper %}abc{{ 'd' }}{% endfilter %}", "{% filter indent(2) %}a\nb{% endfilter %}",
  "a {# c #} b", "a\n{# c #}\nb", "a\n  {#- c -#}  \nb", "a {%- if true %} b {% endif -%} c", "a  {{- 'x' -}}  b", "  {% if true %}\n  x\n  {% endif %}\ny\n", "\n{% set a = 1 %}\n\n{{ a }}\n",
  "x   {% if true %}y{% endif %}", "{% if true %}\n\n a{% endif %}", "{{ 'a' }}\n{{ 'b' }}\n", "{% for i in [1, 2] %}\n- {{ i }}\n{% endfor %}\nend", "\t{%- set q = 1 -%}\n z", "a\n\n", "{{ '{{' }}{{ '%}' }}",
  "{{ {'a': {'b': 1}}['a']['b'] }}", "{{ {'a': {'b': 1}} }}", "{% generation %}x{% endgeneration %}", "a\n{% generation %}\nx\n{% endgeneration %}\nb", "{{ strftime_now('%Y-%m-%d %H:%M %b %B %%') }}",
  "{% for m in messages %}{{ m.role }}:{{ m['content'] | trim }};{% endfor %}", "{% for m in messages[1:] %}{{ m.role }}{% endfor %}", "{% for m in messages[::-1] %}{{ m.role }}{% endfor %}",
  "{{ bos_token }}{{ eos_token }}{{ add_generation_prompt }}", "{{ tools is defined }}", "{% if tools %}x{% endif %}y",
  // Errors.
  "{{ raise_exception('no') }}", "{{ 1 + none }}", "{{ nothing() }}", "{{ 1 | nofilter }}", "{{ 1 is notest }}", "{% if %}", "{{ 1 +", "{% for x in 5 %}{% endfor %}", "{{ 'a' - 1 }}", "{% endif %}", "{% set 1 = 2 %}",
  "{{ (1 }}", "{{ [1 }}", "{% if true %}", "{% for a, b in [[1]] %}{% endfor %}", "{{ 'abc", "{# open", "{{ 1 @ 2 }}", "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{{ range(1, 2, 0) }}",
  "{{ {'a': 1} + 1 }}", "{{ 'a' * 'b' }}", "{% nosuch %}", "{{ {'a': }} }}", "{{ 'x'.nomethod() }}", "{{ ['b', 1] | sort }}",
);
const messages = say(["system", " Sys "], ["user", "Hi"], ["assistant", ""], ["user", "é"]);
const context = { messages, add_generation_prompt: true, bos_token: "<BOS>", eos_token: "<EOS>" };
const expressions = cases.map((template) => ({ template, ...render(template, context) }));
writeFileSync(join(folder, "expressions.json"), JSON.stringify({ now: NOW, messages, cases: expressions }, null, 1) + "\n");
console.log(renderings.length, "renderings,", expressions.length, "expressions");
