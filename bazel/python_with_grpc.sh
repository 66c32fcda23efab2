#!/bin/sh
# Python with gRPC, as tools/test fetches it.
exec "${BATON_PYTHON:?BATON_PYTHON names no Python with gRPC: run tools/test, which fetches it}" -B "$@"
