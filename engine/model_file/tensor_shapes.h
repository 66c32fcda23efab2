#ifndef BATON_ENGINE_MODEL_FILE_TENSOR_SHAPES_H_
#define BATON_ENGINE_MODEL_FILE_TENSOR_SHAPES_H_

#include "absl/status/status.h"
#include "engine/model_file/model_config.h"
#include "engine/model_file/model_file.h"

namespace baton {

// Checks that the file holds every tensor that a model of this configuration computes with, each in its
// shape, norms as F32. UNIMPLEMENTED for a file with a tensor that the architecture does not use (a bias, an
// expert): to leave it out would compute another model.
absl::Status CheckTensorShapes(const ModelFile& file, const ModelConfig& config);

}  // namespace baton

#endif  // BATON_ENGINE_MODEL_FILE_TENSOR_SHAPES_H_
