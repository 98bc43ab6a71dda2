"""Functions in prompts: through a template that knows them, and beside one that does not."""

from __future__ import annotations

import pytest
from isogloss.engine.api import ChatTemplateError
from isogloss.engine.chat import TOOL_FORMATS, Function, FunctionCall
from isogloss.engine.tokenizer import HFTokenizer
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

PLAIN = (
    "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] if m['content'] is string else m['content'][-1]['text'] }}"
    "{% endfor %}"
)
STRICT = (
    "{% for m in messages %}{% if m['role'] not in ['system', 'user', 'assistant'] %}{{ raise_exception('no') }}"
    "{% endif %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}"
)
KNOWING = (
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}"
    "{% if m.tool_calls %}{{ m.tool_calls[0].function.arguments.city }}{% endif %}{% endfor %}"
)
TOOLS = [
    {"type": "function", "function": {"name": "weather", "description": "Tells it.", "parameters": {"type": "object"}}}
]
CALL = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
HISTORY = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Well.", "tool_calls": [CALL]},
    {"role": "tool", "content": "3 degrees", "tool_call_id": "c"},
]
HERMES = TOOL_FORMATS["hermes"]


def tokenizer(template: object, family: str | None = "hermes", special: tuple[str, ...] = ()) -> HFTokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(
        ["hi"],
        trainers.BpeTrainer(
            vocab_size=300,
            special_tokens=["<s>", "</s>", *special],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>")
    fast.chat_template = template
    chosen = None if family is None else TOOL_FORMATS[family]
    return HFTokenizer(fast, eos_token_ids=[1], vocab_size=300, tool_format=chosen)


def rendered(template: object, messages: object, tools: object = (), family: str | None = "hermes") -> str:
    found = tokenizer(template, family)
    return found.decode(found.encode_chat(messages, tools=tools), skip_special_tokens=False)


def told() -> str:
    return HERMES.instructions([Function("weather", "Tells it.", {"type": "object"})])


def test_a_template_that_knows_functions_gets_them_as_they_are():
    for family in ("hermes", None):
        text = rendered(KNOWING, HISTORY, TOOLS, family)
        assert '"name": "weather"' in text
        assert text.endswith("[user]Hi[assistant]Well.Oslo[tool]3 degrees")
        assert "[system]" not in text


def test_a_template_that_does_not_gets_instructions_and_written_calls():
    written = HERMES.write([FunctionCall("weather", '{"city": "Oslo"}')])
    assert rendered(PLAIN, HISTORY, TOOLS) == (f"[system]{told()}[user]Hi[assistant]Well.\n\n{written}[tool]3 degrees")


def test_instructions_join_the_systems_turn():
    system = {"role": "system", "content": "Be brief."}
    assert rendered(PLAIN, [system, *HISTORY[:1]], TOOLS) == f"[system]Be brief.\n\n{told()}[user]Hi"
    parts = {"role": "system", "content": [{"type": "text", "text": "Be brief."}]}
    assert rendered(PLAIN, [parts, *HISTORY[:1]], TOOLS) == f"[system]{told()}[user]Hi"


def test_without_functions_there_are_no_instructions_but_old_calls_are_kept():
    assert rendered(PLAIN, HISTORY[:1]) == "[user]Hi"
    assert '"city": "Oslo"' in rendered(PLAIN, HISTORY)


def test_a_template_that_refuses_results_gets_them_from_the_user():
    assert rendered(STRICT, HISTORY).endswith("[user]3 degrees")


def test_results_have_the_role_that_the_family_names():
    assert rendered(PLAIN, HISTORY, family="chatglm3").endswith("[observation]3 degrees")
    assert rendered(STRICT, HISTORY, family="chatglm3").endswith("[user]3 degrees")


def test_a_template_may_want_arguments_as_text_and_results_with_a_name():
    joining = (
        "{{ tools | length }}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}"
        "{{ '>' + c.function.arguments }}{% endfor %}{% if m.role == 'tool' %}<{{ m.name }}{% endif %}{% endfor %}"
    )
    assert rendered(joining, HISTORY, TOOLS) == '1HiWell.>{"city": "Oslo"}3 degrees<weather'
    other = [{**HISTORY[2], "tool_call_id": "d"}]
    assert rendered(joining, other, TOOLS) == "13 degrees<"


def test_a_template_may_want_one_call_a_turn():
    single = (
        "{{ tools | length }}{% for m in messages %}"
        "{% if m.tool_calls | length > 1 %}{{ raise_exception('one') }}{% endif %}[{{ m.role }}]{{ m.content }}"
        "{% for c in m.tool_calls %}>{{ c.function.arguments.city }}{% endfor %}{% endfor %}"
    )
    other = {**CALL, "id": "d", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}}
    results = [{"role": "tool", "content": name, "tool_call_id": name} for name in "dc"]
    turns = [HISTORY[0], {**HISTORY[1], "tool_calls": [CALL, other]}, *results, {"role": "user", "content": "So?"}]
    assert rendered(single, turns, TOOLS) == ("1[user]Hi[assistant]Well.>Oslo[tool]c[assistant]>Bern[tool]d[user]So?")
    with pytest.raises(ChatTemplateError):
        rendered(single.replace("m.tool_calls | length > 1", "m.tool_calls"), turns, TOOLS)


def test_without_a_format_a_template_is_left_alone():
    assert rendered(PLAIN, HISTORY, TOOLS, family=None) == "[user]Hi[assistant]Well.[tool]3 degrees"
    with pytest.raises(ChatTemplateError):
        rendered(STRICT, HISTORY, TOOLS, family=None)


@pytest.mark.parametrize("family", sorted(TOOL_FORMATS))
@pytest.mark.parametrize("arguments", ["{", "[1]", '{"a":' * 5000, "\ud800"])
def test_broken_arguments_end_in_text_or_in_a_refusal(family, arguments):
    call = {**CALL, "function": {"name": "weather", "arguments": arguments}}
    for template in (PLAIN, KNOWING):
        try:
            assert "[user]Hi" in rendered(template, [HISTORY[0], {**HISTORY[1], "tool_calls": [call]}], TOOLS, family)
        except ChatTemplateError as error:
            assert error.flaw == "refused"


def test_marks_stay_where_special_tokens_are_skipped():
    found = tokenizer(PLAIN, special=("<tool_call>", "<other>"))
    tokens = [2, *found.encode("a", add_special_tokens=False), 3, 1, 2]

    def text(**options: object) -> str:
        decoder = found.decoder([0], **options)  # type: ignore[arg-type]
        return "".join(map(decoder.push, tokens)) + decoder.flush()

    assert text() == "a"
    assert text(marks=("<tool_call>", "<none>")) == "<tool_call>a<tool_call>"
    assert text(marks=("<none>",)) == "a"
    assert text(skip_special_tokens=False, marks=("<tool_call>",)) == "<tool_call>a<other></s><tool_call>"
