#ifndef BATON_CLIENT_BENCH_JSON_H_
#define BATON_CLIENT_BENCH_JSON_H_

#include <string>

#include "client/bench_report.h"

namespace baton {

// The report under the key names of ghz's JSON output, so that tools that read that read this: latencies are
// whole requests, in nanoseconds, failed ones included in `count` and `details`. What ghz does not know
// (TTFT, ITL, TPOT, tokens, goodput; in ms and per second) is in the object `baton`.
std::string BenchReportJson(const BenchReport& report);

}  // namespace baton

#endif  // BATON_CLIENT_BENCH_JSON_H_
