"""Fields without a check in the effects step, and why. Together with the checks' own they are all fields there are."""

from __future__ import annotations

from collections.abc import Mapping

_STREAMED = "the streams step looks at it"
UNOBSERVED: Mapping[str, str] = {
    "stream": _STREAMED,
    "stream_options": _STREAMED,
    "user": "it has no effect, the document says",
    "guided_decoding_backend": "it names a library, and a guide must be followed with each",
    "add_special_tokens": "many tokenizers add none to a prompt, and then nothing changes",
    "priority": "it shows only while more calls wait than run, and from outside nobody knows which do",
    "output_residual_stream": "the document does not say where an answer has it",
    "apply_steering_vectors": "it takes the size of the model's residual stream, which no operation tells",
}
"""Fields of all dialects by name."""
