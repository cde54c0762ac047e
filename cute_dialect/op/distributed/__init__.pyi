"""The public names of the operations of several GPUs: each from the module that defines it."""

from cute_dialect.op.errors import DistributedError as DistributedError
from cute_dialect.op.functions.all_reduce import NormedSum as NormedSum
from cute_dialect.op.functions.all_reduce import all_reduce as all_reduce
from cute_dialect.op.functions.all_reduce import check as check
from cute_dialect.op.functions.all_reduce import reset as reset
