#!/bin/sh
# A model's metadata and tensors with jq: cookbook.sh MOUNT
set -eu
mnt=$1

echo '# Parameters'
jq 'map(.n_elements) | add' "$mnt/tensors.json"

echo '# Tensors, bytes and bits per weight of each type'
jq -r 'group_by(.type)[] | [.[0].type, length, (map(.n_bytes) | add),
       ((map(.n_bytes) | add) * 800 / (map(.n_elements) | add) | round / 100)] | @tsv' \
    "$mnt/tensors.json"

echo '# Bytes of each layer'
jq -r 'map({n_bytes, layer: ((.name | capture("^blk[.](?<n>[0-9]+)").n | tonumber) // "other")})
       | group_by(.layer)[] | [.[0].layer, (map(.n_bytes) | add)] | @tsv' "$mnt/tensors.json"

echo '# The three largest tensors'
jq -r 'sort_by(-.n_bytes)[:3][] | [.n_bytes, .type, .name] | @tsv' "$mnt/tensors.json"

echo '# Hyperparameters'
jq -c 'with_entries(select(.key | startswith("llama.")) | .key |= ltrimstr("llama."))' \
    "$mnt/metadata.json"

echo '# Some tokens'
jq -c '.[257:265]' "$mnt/metadata/tokenizer.ggml.tokens.json"

echo '# Tensors and dtypes in the safetensors file'
header_bytes=$(od -An -tu8 -N8 "$mnt/model.safetensors" | tr -d ' ')
tail -c +9 "$mnt/model.safetensors" | head -c "$header_bytes" |
    jq -r 'del(.__metadata__) | [.[]] | group_by(.dtype)[] | [.[0].dtype, length] | @tsv'
