/*
 * The claim protocol of rabbitonce, for one message ID, as a Promela model. docs/protocol.md explains it and says which
 * step is which function; .ci/model checks it. The parts, in reading order:
 *
 *   settings.pml    bounds, budgets of faults, and the variants in which one rule is missing
 *   state.pml       what there is: record, queue, dead letters, replicas, service
 *   properties.pml  what must hold, by name
 *   store.pml       dedup/scripts/protocol.lua, operation by operation
 *   replica.pml     proxy/pipeline.go, step by step
 *   world.pml       clocks, the service, the broker, crashes, the operator
 */
#include "settings.pml"
#include "state.pml"
#include "properties.pml"
#include "store.pml"
#include "replica.pml"
#include "world.pml"
