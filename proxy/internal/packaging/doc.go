// Package packaging holds the tests of what surrounds the program: the Dockerfile, the Helm chart,
// the compose file and the Deployment example. It has no code of its own.
//
// The chart is rendered by the real Helm through charts/helm.sh, which builds it on first use. The
// image itself is not built: the Dockerfile's build line is run on the same files that the image's
// build context would hold. Every variable that a file here sets must be one that
// docs/configuration.md describes, and every default that a file repeats must be the one written there.
package packaging
