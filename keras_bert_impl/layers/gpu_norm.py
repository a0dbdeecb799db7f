"""The end of half a block as one kernel for JAX on a GPU: bias, residual, LayerNorm.

XLA passes over memory several times for it, forward and backward, and once more for the gradient
of each vector. Here each direction reads once what it needs: a warp takes a row.
"""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas
from jax.experimental.pallas import triton

_MOST_ROWS = 16  # of one program in the backward pass, which writes its sums of vectors once
_WIDEST = 1024  # wider rows have more numbers than a warp's registers hold


def fits(width: int, dtype: str) -> bool:
    """Whether the kernel is one for rows of this width and type here."""
    # XLA cannot share out a kernel of ours among devices, and would gather all rows on each.
    is_for_gpu = dtype != "float32" and jax.device_count() == 1
    return is_for_gpu and _piece(width) >= 128 and width <= _WIDEST


@functools.partial(jax.custom_vjp, nondiff_argnums=(5, 6))
def bias_add_norm(
    inputs: Any, bias: Any, residual: Any, gamma: Any, beta: Any, epsilon: float, interpret: bool
) -> Any:
    """`norm(inputs + bias + residual)` of [rows, width], in float32, given as `residual`'s type.

    With `interpret` it is computed step by step, on any device.
    """
    rows, width = inputs.shape

    def kernel(inputs: Any, bias: Any, residual: Any, gamma: Any, beta: Any, found: Any) -> None:
        row = pallas.program_id(0)
        normal, _ = _normalized(inputs, bias, residual, row, epsilon)
        for at, numbers in zip(_pieces(width), normal, strict=True):
            scaled = numbers * _read(gamma, at) + _read(beta, at)
            found[row, at] = scaled.astype(found.dtype)

    compute = _call(kernel, rows, interpret, _like(residual))
    return compute(inputs, bias, residual, gamma, beta)[0]


def _forward(*arguments: Any) -> tuple[Any, Any]:
    return bias_add_norm(*arguments), arguments[:4]


def _backward(epsilon: float, interpret: bool, kept: Any, upstream: Any) -> tuple[Any, ...]:
    inputs, bias, residual, gamma = kept
    rows, width = inputs.shape
    of_program = max(count for count in range(1, _MOST_ROWS + 1) if rows % count == 0)
    programs = rows // of_program

    def kernel(
        inputs: Any, bias: Any, residual: Any, gamma: Any, upstream: Any, gradient: Any, sums: Any
    ) -> None:
        program = pallas.program_id(0)

        def add_row(number: Any, total: Any) -> Any:
            row = program * of_program + number
            normal, scale = _normalized(inputs, bias, residual, row, epsilon)
            above = [_read(upstream, row, at) for at in _pieces(width)]
            slopes = [
                numbers * _read(gamma, at)
                for at, numbers in zip(_pieces(width), above, strict=True)
            ]
            mean = _mean(slopes)
            share = _mean([x * y for x, y in zip(slopes, normal, strict=True)])
            added = []
            for at, slope, unit, up, (of_bias, of_gamma, of_beta) in zip(
                _pieces(width), slopes, normal, above, total, strict=True
            ):
                down = scale * (slope - mean - unit * share)
                gradient[row, at] = down.astype(gradient.dtype)
                added.append((of_bias + down, of_gamma + up * unit, of_beta + up))
            return tuple(added)

        zeros = (jnp.zeros([_piece(width)], jnp.float32),) * 3
        total = jax.lax.fori_loop(0, of_program, add_row, (zeros,) * len(_pieces(width)))
        for at, of_piece in zip(_pieces(width), total, strict=True):
            for vector, numbers in enumerate(of_piece):
                sums[vector, program, at] = numbers

    parts = jax.ShapeDtypeStruct([3, programs, width], jnp.float32)
    compute = _call(kernel, programs, interpret, _like(residual), parts)
    gradient, sums = compute(inputs, bias, residual, gamma, upstream)
    of_bias, of_gamma, of_beta = jnp.sum(sums, axis=1)
    vectors = of_gamma.astype(gamma.dtype), of_beta.astype(gamma.dtype)
    return gradient.astype(inputs.dtype), of_bias.astype(bias.dtype), gradient, *vectors


bias_add_norm.defvjp(_forward, _backward)


def _normalized(
    inputs: Any, bias: Any, residual: Any, row: Any, epsilon: float
) -> tuple[list[Any], Any]:
    """A row of mean 0 and variance 1, in pieces, and 1 / its deviation before."""
    total = [
        _read(inputs, row, at) + _read(bias, at) + _read(residual, row, at)
        for at in _pieces(inputs.shape[1])
    ]
    mean = _mean(total)
    centered = [numbers - mean for numbers in total]
    scale = jax.lax.rsqrt(_mean([numbers * numbers for numbers in centered]) + epsilon)
    return [numbers * scale for numbers in centered], scale


def _mean(row: Sequence[Any]) -> Any:
    sums = [jnp.sum(piece) for piece in row]
    return sum(sums[1:], sums[0]) / sum(piece.size for piece in row)


def _read(reference: Any, *at: Any) -> Any:
    return reference[at].astype(jnp.float32)


def _pieces(width: int) -> list[Any]:
    return [pallas.ds(start, _piece(width)) for start in range(0, width, _piece(width))]


def _piece(width: int) -> int:
    """The largest power of two that divides the width: as much as is loaded at once."""
    return width & -width


def _like(tensor: Any) -> Any:
    return jax.ShapeDtypeStruct(tensor.shape, tensor.dtype)


def _call(kernel: Any, programs: int, interpret: bool, *results: Any) -> Any:
    return pallas.pallas_call(
        kernel,
        out_shape=results,
        grid=(programs,),
        compiler_params=triton.CompilerParams(num_warps=1, num_stages=1),
        interpret=interpret,
    )
