"""Tiny random models of several families, and a driver that steps an engine core without threads."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import isogloss.engine.torch
import pytest
import torch
from isogloss.engine.api import GenerationRequest, Sampling, Stopping
from isogloss.engine.tokens import Admitted, PromptScored, Sampled
from isogloss.engine.torch.core import EngineCore
from isogloss.engine.torch.executor import Executor
from isogloss.engine.torch.jobs import Job
from isogloss.engine.torch.scheduler import Limits
from isogloss.engine.torch.stepper import Stepper, StepperSettings
from isogloss.engine.torch.transformers_executor import PreparedModel, TransformersExecutor
from isogloss.models import default_cache, resolve_model

VOCABULARY = 320
CONTEXT = 256

TEXT = (
    "An isogloss is the line on a map where one dialect ends and the next begins. "
    "The quick brown fox jumps over the lazy dog; le renard brun saute, der Fuchs springt. 0123456789"
)

FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"num_key_value_heads": 2, "eos_token_id": 1},
    "qwen2": {"num_key_value_heads": 2},
    "qwen3": {"num_key_value_heads": 2, "head_dim": 16},
    "mistral": {"num_key_value_heads": 4, "sliding_window": None},
    "gpt2": {},
    "opt": {"ffn_dim": 64, "word_embed_proj_dim": 32},
    "gpt_neox": {},
}
REFUSED: dict[str, dict[str, Any]] = {
    "mistral": {"sliding_window": 16, "num_key_value_heads": 2},
    "gemma2": {"num_key_value_heads": 2, "head_dim": 8},
    "gpt_oss": {"num_key_value_heads": 2, "head_dim": 8, "num_local_experts": 2},
    "mamba": {},
    "bloom": {"n_head": 4},
}


def build_model(family: str, options: dict[str, Any]) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM  # noqa: PLC0415 - slow, and not for every test

    torch.manual_seed(7)
    config = AutoConfig.for_model(
        family,
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        max_position_embeddings=CONTEXT,
        **{"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1, **options},
    )
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    # Larger weights than a training starts from: otherwise attention hardly matters.
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                weight.normal_(std=0.35 if "embed" not in name else 0.8)
    return model


def build_tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: PLC0415
    from transformers import PreTrainedTokenizerFast  # noqa: PLC0415

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - 8,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")


class Zoo:
    """Tiny models, each built once and saved to a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._stock: dict[str, Any] = {}

    def folder(self, family: str) -> Path:
        folder = self._root / family
        if not folder.exists():
            build_model(family, FAMILIES[family]).save_pretrained(folder)
            build_tokenizer().save_pretrained(folder)
        return folder

    def load(self, family: str) -> Any:
        from transformers import AutoModelForCausalLM  # noqa: PLC0415

        return AutoModelForCausalLM.from_pretrained(self.folder(family), dtype=torch.float32).eval()

    def executor(self, family: str, *, blocks: int = 128, block_size: int = 4) -> TransformersExecutor:
        return PreparedModel(self.load(family), CONTEXT).executor(blocks, block_size)

    def generate(self, family: str, prompt: Sequence[int], count: int) -> list[int]:
        """What transformers itself generates, greedily, without an end."""
        if family not in self._stock:
            self._stock[family] = self.load(family)
        return generate(self._stock[family], prompt, count)


@torch.inference_mode()
def generate(model: Any, prompt: Sequence[int], count: int) -> list[int]:
    ids = torch.tensor([list(prompt)])
    model.generation_config.eos_token_id = None
    out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=count, do_sample=False)
    return out[0, len(prompt) :].tolist()


@torch.inference_mode()
def beam_search(
    model: Any, prompt: Sequence[int], beams: int, n: int, count: int, ends: Collection[int] = (), **options: Any
) -> list[list[int]]:
    """The sequences that transformers itself finds, without the padding behind their end."""
    ids = torch.tensor([list(prompt)])
    model.generation_config.eos_token_id = None
    found = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=count,
        num_beams=beams,
        num_return_sequences=n,
        do_sample=False,
        early_stopping=False,
        length_penalty=1.0,
        eos_token_id=sorted(ends) or None,
        pad_token_id=0,
        **options,
    )
    return [_upto(row[len(prompt) :].tolist(), ends) for row in found]


def _upto(tokens: list[int], ends: Collection[int]) -> list[int]:
    places = [place for place, token in enumerate(tokens) if token in ends]
    return tokens[: places[0] + 1] if places else tokens


class Driver:
    """An engine core, stepped by hand; keeps what each job was told."""

    def __init__(self, executor: Executor, *, seqs: int = 16, budget: int = 64) -> None:
        self.core = EngineCore(executor, Limits(max_num_seqs=seqs, prefill_budget=budget))
        self.tokens: defaultdict[Job, defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        self.events: defaultdict[Job, list[Any]] = defaultdict(list)
        self.failures: dict[Job, Exception] = {}
        self.finished: set[Job] = set()
        self.steps = 0
        self._arrivals = 0

    def submit(self, request: GenerationRequest, eos: frozenset[int] = frozenset()) -> Job:
        job = Job(request, self._arrivals, eos)
        self._arrivals += 1
        self.core.add(job)
        return job

    def step(self) -> None:
        self.core.step()
        self.steps += 1
        self.collect()

    def collect(self) -> None:
        outbox, self.core.outbox = self.core.outbox, {}
        for job, parcel in outbox.items():
            self.events[job] += parcel.events
            for event in parcel.events:
                if isinstance(event, Sampled):
                    self.tokens[job][event.choice].append(event.token_id)
            if parcel.failure is not None:
                self.failures[job] = parcel.failure
            if parcel.last:
                self.finished.add(job)

    def run(self, limit: int = 2000) -> None:
        while self.core.busy:
            self.step()
            assert self.steps < limit, "the core does not come to an end"

    def only(self, job: Job, kind: type) -> Any:
        (event,) = (event for event in self.events[job] if isinstance(event, kind))
        return event

    def cached(self, job: Job) -> int:
        return int(self.only(job, Admitted).cached_tokens)

    def prompt_scores(self, job: Job) -> Any:
        return self.only(job, PromptScored).scores


def make_request(prompt: Sequence[int], count: int, sampling: Sampling | None = None, **more: Any) -> GenerationRequest:
    """A request that does not end before `count` tokens."""
    stopping = more.pop("stopping", Stopping(count, ignore_eos=True))
    return GenerationRequest("r", list(prompt), stopping, sampling or Sampling(temperature=0.0), **more)


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zoo]:
    torch.set_num_threads(1)
    assert isogloss.engine.torch
    yield Zoo(tmp_path_factory.mktemp("zoo"))


@pytest.fixture(scope="session")
def drive() -> type[Driver]:
    return Driver


@pytest.fixture(scope="session")
def ask() -> Callable[..., GenerationRequest]:
    return make_request


@pytest.fixture(scope="session")
def greedy_reference() -> Callable[..., list[int]]:
    return generate


@pytest.fixture(scope="session")
def beam_reference() -> Callable[..., list[list[int]]]:
    return beam_search


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """Folder of the embedded model, converted once for all processes of the machine."""
    return resolve_model("smollm2", default_cache()).folder


@pytest.fixture(params=sorted(FAMILIES))
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=sorted(REFUSED))
def refused(request: pytest.FixtureRequest) -> Any:
    return build_model(request.param, REFUSED[request.param])


class Slow:
    """An executor whose steps take a while, and whose first can be held up."""

    def __init__(self, executor):
        self._executor = executor
        self.gate = threading.Event()
        self.gate.set()
        self.pause = 0.0
        self.steps = 0
        self.threads = 0

    def __getattr__(self, name):
        return getattr(self._executor, name)

    def forward(self, spans):
        self.gate.wait(10)
        time.sleep(self.pause)
        self.steps += 1
        self.threads = torch.get_num_threads()
        return self._executor.forward(spans)


@pytest.fixture
def executor(zoo):
    return Slow(zoo.executor("llama"))


@pytest.fixture
def stepper(executor):
    core = EngineCore(executor, Limits(max_num_seqs=2, prefill_budget=16))
    stepper = Stepper(core, StepperSettings(max_waiting=3, threads=1, eos=frozenset()))
    stepper.start()
    yield stepper
    executor.gate.set()
    stepper.stop()
    assert core.pool.usage == 0
