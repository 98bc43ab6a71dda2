"""The model's own template: what reaches it, what never does, and how its failures look."""

from __future__ import annotations

import pytest
from isogloss.engine.api import ChatTemplateError
from isogloss.engine.scripted.vocabulary import ByteTokenizer
from isogloss.engine.tokenizer import HFTokenizer
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

PLAIN = (
    "{{ bos_token }}{% for message in messages %}[{{ message['role'] }}]{{ message['content'] + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
THINKING = PLAIN + "{% if enable_thinking %}<think>{% endif %}{{ style }}"
CALLS = (
    "{% for message in messages %}{% for call in message.tool_calls %}"
    "{{ call.function.name }}{{ call.function.arguments | tojson }}{% endfor %}{% endfor %}."
)
USER = [{"role": "user", "content": "hi"}]


def bare(template: object) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        ["hi"],
        trainers.BpeTrainer(
            vocab_size=300, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet, show_progress=False
        ),
    )
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    made.chat_template = template
    return made


def rendered(template: object, messages: object = None, /, **arguments: object) -> str:
    tokenizer = HFTokenizer(bare(template), eos_token_ids=[1], vocab_size=300)
    tokens = tokenizer.encode_chat(USER if messages is None else messages, arguments=arguments)
    return tokenizer.decode(tokens, skip_special_tokens=False)


def test_the_prompt_ends_where_the_assistant_begins():
    assert rendered(PLAIN) == "<s>[user]hi\n[assistant]"


def test_special_tokens_are_the_templates_alone():
    tokenizer = HFTokenizer(bare(PLAIN), eos_token_ids=[1], vocab_size=300)
    assert tokenizer.encode_chat(USER).count(0) == 1


def test_custom_roles_are_the_templates_business():
    assert "[narrator]x" in rendered(PLAIN, [{"role": "narrator", "content": "x"}])


def test_arguments_reach_a_template_that_knows_them():
    assert rendered(THINKING, enable_thinking=True, style="kind").endswith("[assistant]<think>kind")
    assert rendered(THINKING, enable_thinking=False) == rendered(THINKING)
    assert rendered(PLAIN, enable_thinking=True) == rendered(PLAIN)


@pytest.mark.parametrize(
    "arguments",
    [
        {"chat_template": "{% for i in range(99999) %}{% for j in range(99999) %}{{ i }}{% endfor %}{% endfor %}"},
        {"messages": [{"role": "user", "content": "other"}]},
        {"conversation": []},
        {"conversations": []},
        {"tokenize": True},
        {"add_generation_prompt": False},
        {"continue_final_message": True},
        {"tools": [{"type": "function"}]},
        {"documents": [1]},
        {"bos_token": "</s>"},
        {"raise_exception": 1, "range": 2, "namespace": 3, "self": 4},
        {"tokenizer_kwargs": {}, "return_dict": False, "max_length": 1, "truncation": True},
    ],
)
def test_nothing_else_of_a_clients_gets_through(arguments):
    """Not even where the template speaks of it."""
    template = PLAIN + "{# " + " ".join(arguments) + " #}"
    assert rendered(template, **arguments) == rendered(PLAIN)


def test_names_that_the_template_never_says_cost_nothing():
    assert rendered(PLAIN, no_such_name="x" * 10_000_000, other=[[]]) == rendered(PLAIN)


@pytest.mark.parametrize("value", ["x" * 2000, 10**30, [1], {"a": 1}])
def test_a_value_that_may_cost_much_is_refused(value):
    with pytest.raises(ChatTemplateError):
        rendered(THINKING, style=value)


@pytest.mark.parametrize(
    ("template", "messages"),
    [
        (None, USER),
        ({"tool_use": PLAIN}, USER),
        ("{{ raise_exception('roles must alternate') }}", USER),
        (PLAIN, [{"role": "user", "content": None}]),
        ("{{ 1 / 0 }}", USER),
        ("{% for i in range(9) %}", USER),
        ("{{ ''.__class__.__mro__ }}", USER),
        ("{% for i in range(10 ** 9) %}{% endfor %}", USER),
        ("", USER),
        ("{# nothing #}", USER),
    ],
)
def test_failures_say_nothing_of_the_messages(template, messages):
    with pytest.raises(ChatTemplateError) as caught:
        rendered(template, messages)
    assert "hi" not in str(caught.value).split()


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"a": [1]}', 'f{"a": [1]}.'),
        ("", 'f"".'),
        ("[1]", 'f"[1]".'),
        ('{"a"', 'f"{\\"a\\"".'),
        ("[" * 100_000, 'f"' + "[" * 100_000 + '".'),
    ],
)
def test_arguments_of_calls_are_a_mapping_where_they_can_be(arguments, shown):
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    assert rendered(CALLS, [{"role": "assistant", "content": "", "tool_calls": [call]}]) == shown


def test_arguments_nested_beyond_measure_fail_the_template_only():
    deep = '{"a":' * 900 + "1" + "}" * 900
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": deep}}
    with pytest.raises(ChatTemplateError):
        rendered(CALLS + "{{ 1 / 0 }}", [{"role": "assistant", "content": "", "tool_calls": [call]}])


def test_the_scripted_engines_own_template():
    tokenizer = ByteTokenizer()
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "narrator", "content": "Hi"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "3", "tool_call_id": "c"},
    ]
    text = tokenizer.decode(tokenizer.encode_chat(messages))
    assert text.startswith("<|narrator|>\nHi\n<|assistant|>\n[{")
    assert text.endswith("<|tool|>\n3\n<|assistant|>\n")
    assert '"name": "f"' in text
    assert tokenizer.encode_chat(messages, arguments={"enable_thinking": True}) == tokenizer.encode_chat(messages)
