"""The messages and stubs of proto/, generated when this module is imported; the working folder is the root of the tree."""

import atexit
import pathlib
import shutil
import sys
import tempfile

from grpc_tools import protoc

_folder = tempfile.mkdtemp()
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
_sources = sorted(str(path) for path in pathlib.Path("proto").glob("baton/v1/*.proto"))
if protoc.main(["protoc", "-Iproto", "--python_out=" + _folder, "--grpc_python_out=" + _folder, *_sources]) != 0:
    raise RuntimeError("protoc failed")
sys.path.insert(0, _folder)

# pylint: disable=wrong-import-position,import-error,unused-import
from baton.v1 import control_pb2, control_pb2_grpc  # noqa: E402,F401
from baton.v1 import decode_pb2, decode_pb2_grpc  # noqa: E402,F401
from baton.v1 import inference_pb2, inference_pb2_grpc  # noqa: E402,F401
from baton.v1 import kv_transfer_pb2, kv_transfer_pb2_grpc  # noqa: E402,F401
from baton.v1 import prefill_pb2, prefill_pb2_grpc  # noqa: E402,F401
from baton.v1 import leg_pb2, types_pb2  # noqa: E402,F401
from google.protobuf.message import DecodeError  # noqa: E402,F401
