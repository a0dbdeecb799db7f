"""Which engine computes, and in which numbers."""

import dataclasses

from keras_bert_impl.backend import need_extra
from keras_bert_impl.errors import UserError
from keras_bert_impl.options import Options, option

TENSORFLOW, OPENVINO = "tensorflow", "openvino"
ENGINES = (TENSORFLOW, OPENVINO)
FLOAT32, BFLOAT16, INT8 = "float32", "bfloat16", "int8"
PRECISIONS = (FLOAT32, BFLOAT16, INT8)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EngineConfig(Options):
    """What computes a trained model's outputs, which may lie there as a graph of OpenVINO's."""

    engine: str | None = option(
        None,
        "What computes: tensorflow, or openvino, which is faster on CPUs, needs the extra "
        "openvino, and starts in a second from the second time on; by default openvino for an "
        "export for it, else tensorflow.",
        choices=ENGINES,
    )
    precision: str = option(
        FLOAT32,
        "The number format to compute in: bfloat16 is about twice as fast where the processor "
        "supports it, and accurate to two digits; int8 (openvino only) is faster still, its "
        "scales are found once on some texts of a file and kept next to the model.",
        choices=PRECISIONS,
    )
    deterministic: bool = option(
        False,
        "Compute every text alone, so that it gets the same bytes whatever else is in its batch; "
        "otherwise the last digits depend on the texts that are computed together.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.engine == TENSORFLOW and self.precision == INT8:
            raise UserError("`precision=int8` needs `engine=openvino`; give both.")


def need_openvino() -> None:
    """Refuses to begin where OpenVINO is not installed."""
    need_extra(OPENVINO, ["openvino"], "`engine=openvino`")
