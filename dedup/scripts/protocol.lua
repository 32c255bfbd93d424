-- The claim protocol, as Redis runs it: one atomic step on one key.
-- dedup/protocol.go holds the same rules in Go for the memory store; a test
-- drives both with the same operations and compares every byte.
--
--   KEYS[1]  the record of one message ID
--   ARGV[1]  the operation; the rest, by operation:
--     claim    token, fingerprint, compare (0|1), lease, deadline, retention, dead-id
--     renew    token, lease, retention
--     succeed  status, fingerprint, retention
--     wait     token, delay, class (failed|deferred|unknown), retention
--     bury     token, reason, dead-id, unknown (0|1), retention
--     release  token, retention
--     undead   dead-id
--   Durations are milliseconds. Tokens (16 bytes), fingerprints (8 bytes) and
--   dead-ids (8 bytes, or none in a claim) are binary.
--
-- The answer is one string: a letter, the server's clock (6 bytes), and the
-- record as it now is, empty when there is none. The letters:
--   claim        c claimed, d done, b busy, w waiting, x dead, k conflict
--   all others   a applied, d found done, n not ours
--
-- The record's form is described in dedup/codec.go. Three rules hold throughout:
--   * All times are this server's clock. Replicas of the sidecar need not agree
--     on the time.
--   * Every write sets the expiry to the retention. The lease is a field and
--     not the expiry, so that a lease that ran out forgets neither the attempts
--     nor that an outcome is unknown.
--   * Only the holder changes a record, and proves it by its token; a success
--     alone is written by anyone, for it is a fact whoever holds the lease.

local key, operation = KEYS[1], ARGV[1]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local HEAD, HEAD_SIZE = '>c1I2I2BI6c8', 20
local SIZE = {p = 49, w = 26, d = 28, x = 35}
-- What releasing a processing record does; the last byte before its tail.
local UNDO_DELETE, UNDO_RESTORE, UNDO_NONE = '\0', '\1', '\2'

local function answer(letter, record)
  return letter .. struct.pack('>I6', now) .. record
end

local function write(record, retention)
  redis.call('SET', key, record, 'PX', retention)
  return answer('a', record)
end

-- Counters stop at the end of their width: a wrapped counter would start anew.
local function more(counter, limit)
  return math.min(counter + 1, limit)
end

if operation == 'claim' then
  local token, fingerprint, retention = ARGV[2], ARGV[3], ARGV[7]
  local times = struct.pack('>I6I6', now + ARGV[5], now + ARGV[6])

  -- Fresh: nobody has had this ID, or its retention is over.
  local fresh = struct.pack(HEAD, 'p', 1, 0, 0, now, fingerprint) .. token .. times .. UNDO_DELETE
  if redis.call('SET', key, fresh, 'NX', 'PX', retention) then
    return answer('c', fresh)
  end
end

local found = redis.call('GET', key)
local kind, unknown, token_found
local state, attempts, deferred, unknowns, first, fingerprint_found
if found then
  kind = string.lower(string.sub(found, 1, 1))
  local size = SIZE[kind]
  if not size or #found < size or (kind ~= 'p' and #found ~= size) then
    return redis.error_reply('NORECORD the key holds no rabbitonce record; use a DEDUP_PREFIX of its own')
  end
  state, attempts, deferred, unknowns, first, fingerprint_found = struct.unpack(HEAD, found)
  unknown = state ~= kind
  if kind == 'p' then
    token_found = string.sub(found, 21, 36)
  end
end

-- The state's letter, in upper case once any outcome was unknown. Unknown is
-- sticky: every later request is flagged to the service.
local function letter(state_letter)
  if unknown then
    return string.upper(state_letter)
  end
  return state_letter
end

if operation == 'claim' then
  local token, fingerprint, compare = ARGV[2], ARGV[3], ARGV[4] == '1'
  local retention, dead_id = ARGV[7], ARGV[8]
  local times = struct.pack('>I6I6', now + ARGV[5], now + ARGV[6])

  -- 1. Our own claim, repeated: its reply was lost, or the holder asks again
  -- right before the request. The same attempt, a new lease, and what a
  -- release would restore stays.
  if token_found == token then
    local record = string.sub(found, 1, 36) .. times .. string.sub(found, 49)
    redis.call('SET', key, record, 'PX', retention)
    return answer('c', record)
  end

  -- 2. Another payload under the same ID. Before everything else: a takeover
  -- would run the wrong work under this ID, and "done" would ack work that
  -- never ran.
  if compare and fingerprint ~= fingerprint_found then
    return answer('k', found)
  end

  if kind == 'd' then
    return answer('d', found)
  end

  local undo
  if kind == 'x' then
    -- 3. Dead: nobody runs it, whoever finds it publishes the letter again.
    -- Only the dead letter itself, put back, carries the dead-id and opens the
    -- record. Its retries start again; "ever unknown" does not.
    if dead_id ~= string.sub(found, 22, 29) then
      return answer('x', found)
    end
    attempts, deferred, unknowns, first = 0, 0, 0, now
    undo = found
  elseif kind == 'p' then
    -- 4. Somebody else's. It is taken over when its lease has run out and the
    -- deadline of its request has passed: the holder may be gone while the
    -- service still works on it. What became of that request is unknown.
    local lease, deadline = struct.unpack('>I6I6', found, 37)
    if now < math.max(lease, deadline) then
      return answer('b', found)
    end
    unknowns, unknown = more(unknowns, 255), true
    -- An undo never nests: the record that was taken over loses its own.
    undo = string.sub(found, 1, 48) .. UNDO_NONE
  else
    -- 5. Waiting: no copy jumps the ladder.
    if now < struct.unpack('>I6', found, 21) then
      return answer('w', found)
    end
    undo = found
  end

  local head = struct.pack(HEAD, letter('p'), more(attempts, 65535), deferred, unknowns, first, fingerprint)
  local record = head .. token .. times .. UNDO_RESTORE .. undo
  redis.call('SET', key, record, 'PX', retention)
  return answer('c', record)
end

if operation == 'succeed' then
  local status, fingerprint, retention = ARGV[2], ARGV[3], ARGV[4]
  -- The first success stays as it is.
  if kind == 'd' then
    return answer('d', found)
  end
  -- Unconditional, whatever the record: the work is done, and whoever claims
  -- the ID next must hear of it.
  if not found then
    state, attempts, deferred, unknowns, first = 'd', 1, 0, 0, now
  end
  return write(struct.pack(HEAD, letter('d'), attempts, deferred, unknowns, first, fingerprint)
    .. struct.pack('>I6I2', now, status), retention)
end

if operation == 'undead' then
  -- After the dead letter is safe and its delivery acked, the record goes, so
  -- that a message put back by any tool is processed again. But not when an
  -- outcome was ever unknown: then only its dead-id, or an operator, opens it.
  if kind == 'x' and not unknown and string.sub(found, 22, 29) == ARGV[2] then
    redis.call('DEL', key)
    return answer('a', '')
  end
  return answer(kind == 'd' and 'd' or 'n', found or '')
end

-- From here on the holder speaks. Anyone else changes nothing, and is told
-- whether the work is done.
if token_found ~= ARGV[2] or not found then
  return answer(kind == 'd' and 'd' or 'n', found or '')
end

if operation == 'renew' then
  -- The lease alone: the deadline is the request's and does not move.
  return write(string.sub(found, 1, 36) .. struct.pack('>I6', now + ARGV[3]) .. string.sub(found, 43), ARGV[4])
end

if operation == 'wait' then
  local class, not_before = ARGV[4], now + ARGV[3]
  if class == 'deferred' then
    deferred = more(deferred, 65535)
  elseif class == 'unknown' then
    -- The request may still be at work: nobody repeats it before its deadline.
    unknowns, unknown = more(unknowns, 255), true
    not_before = math.max(not_before, (struct.unpack('>I6', found, 43)))
  end
  return write(struct.pack(HEAD, letter('w'), attempts, deferred, unknowns, first, fingerprint_found)
    .. struct.pack('>I6', not_before), ARGV[5])
end

if operation == 'bury' then
  -- Before the letter is published: from now on no copy is run, only
  -- published again.
  if ARGV[5] == '1' then
    unknowns, unknown = more(unknowns, 255), true
  end
  return write(struct.pack(HEAD, letter('x'), attempts, deferred, unknowns, first, fingerprint_found)
    .. struct.pack('>B', ARGV[3]) .. ARGV[4] .. struct.pack('>I6', now), ARGV[6])
end

if operation == 'release' then
  -- No request began: everything is as the claim found it, and only a record
  -- that this claim created is deleted.
  local undo = string.sub(found, 49, 49)
  if undo == UNDO_DELETE then
    redis.call('DEL', key)
    return answer('a', '')
  elseif undo == UNDO_RESTORE then
    return write(string.sub(found, 50), ARGV[3])
  end
  return answer('n', found)
end

return redis.error_reply('NOOPERATION ' .. tostring(operation))
