"""Result types that upstream computes in C++ (`inferReturnTypes`), for the ops whose format does not write them."""

from collections.abc import Mapping
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, VectorType
from xdsl.ir import Attribute

from cute_dialect.upstream.llvm_types import LLVMArrayType, LLVMStructType
from cute_dialect.upstream.spec import Types


def special_results(name: str, types: Types, props: Mapping[str, Attribute]) -> list[Attribute] | None:
    """The result types of op `name`, or None when no C++ rule of upstream gives them."""
    match name:
        case "vector.shuffle":
            v1, mask = types["v1"][0], props.get("mask")
            if isinstance(v1, VectorType) and isinstance(mask, DenseArrayBase):
                return [VectorType(v1.element_type, (len(mask), *v1.get_shape()[1:]))]
        case "llvm.extractvalue":
            if "container" in types and isinstance(position := props.get("position"), DenseArrayBase):
                inner = container_element(types["container"][0], cast("tuple[int, ...]", position.get_values()))
                return None if inner is None else [inner]
        case "llvm.shufflevector":
            v1, mask = types["v1"][0], props.get("mask")
            if isinstance(v1, VectorType) and isinstance(mask, DenseArrayBase):
                return [VectorType(v1.element_type, [len(mask)], v1.scalable_dims)]
        case _:
            pass
    return None


def container_element(container: Attribute, position: tuple[int, ...]) -> Attribute | None:
    """The type at `position` inside nested structs and arrays, None when there is none."""
    for index in position:
        if isinstance(container, LLVMStructType) and 0 <= index < len(container.types):
            container = container.types[index]
        elif isinstance(container, LLVMArrayType) and 0 <= index < container.size:
            container = container.element_type
        else:
            return None
    return container
