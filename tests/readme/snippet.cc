#include <cstdio>

#include "baton/v1/inference.grpc.pb.h"
#include "grpcpp/grpcpp.h"

int main(int argc, char** argv) {
  const auto channel =
      grpc::CreateChannel(argc > 1 ? argv[1] : "127.0.0.1:7600", grpc::InsecureChannelCredentials());
  const auto stub = baton::v1::Inference::NewStub(channel);
  baton::v1::GenerateRequest request;
  request.set_prompt("Once upon a time");
  request.mutable_stopping()->set_max_tokens(16);
  grpc::ClientContext context;
  const auto stream = stub->GenerateStream(&context, request);
  baton::v1::GenerateStreamResponse delta;
  while (stream->Read(&delta)) std::fputs(delta.text().c_str(), stdout);
  const grpc::Status status = stream->Finish();
  std::printf("\n%s, TTFT %.1f ms\n", status.ok() ? "done" : status.error_message().c_str(),
              delta.timings().ttft_ms());
  return status.ok() ? 0 : 1;
}
