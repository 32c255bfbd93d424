#!/bin/sh
# Runs Helm with the given arguments, so that everyone renders the charts with the same one:
# $HELM when set, else the pinned version below, built once (one to four minutes) into .cache.
set -eu

version=v3.22.0
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
bin=$root/.cache/helm-$version/bin

if [ -z "${HELM:-}" ]; then
	HELM=$bin/helm
	if ! [ -x "$HELM" ]; then
		mkdir -p "$bin"
		echo "building helm $version into .cache, once" >&2
		# Built aside and renamed, so that a build cut off leaves no half of a program behind.
		aside=$(mktemp -d "$bin/build.XXXXXX")
		trap 'rm -rf "$aside"' EXIT
		GOBIN=$aside GOFLAGS=-mod=mod CGO_ENABLED=0 go install "helm.sh/helm/v3/cmd/helm@$version" >&2
		mv "$aside/helm" "$HELM"
		rm -rf "$aside"
	fi
fi
exec "$HELM" "$@"
