"""Message classes made at run time, for protobuf messages that TensorBoard does not ship.

They live in descriptor pools of their own, so that TensorFlow may be imported beside them; importing it for its classes would take ten
seconds and half a gigabyte.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Message → its fields as (name, number, type): a type of protobuf or another message, with * where it is repeated and |name where it
# belongs to a oneof. Fields that are left out are skipped when a message is read.
Fields = Mapping[str, tuple[tuple[str, int, str], ...]]


def message_class(fields: Fields, root: str) -> Any:
    """The class of the message `root`."""
    return message_classes(fields)[root]


def message_classes(fields: Fields) -> Mapping[str, Any]:
    """The class of each message."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field_type = descriptor_pb2.FieldDescriptorProto
    proto = descriptor_pb2.FileDescriptorProto(name="tb_advisor.proto", package="tb_advisor", syntax="proto3")
    for message, its_fields in fields.items():
        descriptor = proto.message_type.add(name=message)
        oneofs: list[str] = []
        for name, number, kind in its_fields:
            kind, _, oneof = kind.partition("|")
            label = field_type.LABEL_REPEATED if kind.endswith("*") else field_type.LABEL_OPTIONAL
            kind = kind.removesuffix("*")
            entry = descriptor.field.add(name=name, number=number, label=label)
            if kind in fields:
                entry.type, entry.type_name = field_type.TYPE_MESSAGE, f".tb_advisor.{kind}"
            else:
                entry.type = field_type.Type.Value(f"TYPE_{kind.upper()}")
            if oneof:
                if oneof not in oneofs:
                    oneofs.append(oneof)
                    descriptor.oneof_decl.add(name=oneof)
                entry.oneof_index = oneofs.index(oneof)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(proto)
    descriptors = {message: pool.FindMessageTypeByName(f"tb_advisor.{message}") for message in fields}
    if hasattr(message_factory, "GetMessageClass"):
        return {message: message_factory.GetMessageClass(descriptor) for message, descriptor in descriptors.items()}
    old_factory: Any = message_factory.MessageFactory(pool)  # protobuf before 4.22
    return {message: old_factory.GetPrototype(descriptor) for message, descriptor in descriptors.items()}
