"""Result types that upstream infers in C++ (`inferReturnTypes`), for ops whose format omits them."""

from collections.abc import Mapping

from xdsl.ir import Attribute

from cute_dialect.upstream.llvm_types import LLVMArrayType, LLVMStructType
from cute_dialect.upstream.spec import Types
from cute_dialect.upstream.typed import is_vector, numbers, vector


def special_results(name: str, types: Types, props: Mapping[str, Attribute]) -> list[Attribute] | None:
    """Return the result types of op `name`, or None if upstream has no C++ rule for it."""
    match name:
        case "vector.shuffle":
            v1 = types["v1"][0]
            if is_vector(v1):
                return [vector(v1.element_type, (len(numbers(props.get("mask"))), *v1.get_shape()[1:]))]
        case "llvm.extractvalue":
            if "container" in types:
                inner = container_element(types["container"][0], numbers(props.get("position")))
                return None if inner is None else [inner]
        case "llvm.shufflevector":
            v1 = types["v1"][0]
            if is_vector(v1):
                return [vector(v1.element_type, [len(numbers(props.get("mask")))], v1)]
        case "memref.distinct_objects":
            return list(types.get("operands", ()))
        case _:
            pass
    return None


def container_element(container: Attribute, position: tuple[int, ...]) -> Attribute | None:
    """Return the type at `position` in nested structs and arrays, or None if there is none."""
    for index in position:
        if isinstance(container, LLVMStructType) and 0 <= index < len(container.types):
            container = container.types[index]
        elif isinstance(container, LLVMArrayType) and 0 <= index < container.size:
            container = container.element_type
        else:
            return None
    return container
