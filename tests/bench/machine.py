"""The machine by what its processor can do, since its name says little and may be made up."""

import os
import platform

# Of the flags that the kernel lists, those that the kernels of either engine use.
FEATURES = (
    "avx2",
    "fma",
    "f16c",
    "avx_vnni",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "amx_bf16",
    "amx_int8",
)


def cpu_fields():
    fields = {}
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            name, _, value = line.partition(":")
            fields.setdefault(name.strip(), value.strip())
    return fields


def memory_bytes():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def describe():
    fields = cpu_fields()
    flags = set(fields.get("flags", "").split())
    have = [feature for feature in FEATURES if feature in flags]
    vendor = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD"}.get(
        fields.get("vendor_id"), fields.get("vendor_id", "unknown")
    )
    cores = len(os.sched_getaffinity(0))
    name = "%d cores, %s family %s model %s" % (cores, vendor, fields.get("cpu family", "?"), fields.get("model", "?"))
    return {
        "name": "%s, with %s" % (name, ", ".join(have) or "none of the listed features"),
        "cores": cores,
        "features": have,
        "lacks": [feature for feature in FEATURES if feature not in flags],
        "memory_bytes": memory_bytes(),
        "system": "%s %s" % (platform.system(), platform.release()),
    }


def load_average():
    return os.getloadavg()[0]
