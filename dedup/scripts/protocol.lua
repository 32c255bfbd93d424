-- The claim protocol, as Redis runs it: one atomic step on one key, and many of
-- them, each for itself, in one call.
-- dedup/protocol.go holds the same rules in Go for the memory store; a test
-- drives both with the same operations and compares every byte.
--
--   KEYS  the records of some message IDs, an operation on each; a key may come
--         again
--   ARGV  for each operation in turn: how many words follow, its name, and
--     claim    token, fingerprint, compare (0|1), lease, deadline, retention, dead-id
--     renew    token, lease, retention
--     succeed  status, fingerprint, retention
--     wait     token, delay, class (failed|deferred|unknown), retention
--     bury     token, reason, dead-id, unknown (0|1), retention
--     clear    token, retention
--     release  token, retention
--     undead   dead-id
--     forget   the record as it was seen
--   Durations are milliseconds. Tokens (16 bytes), fingerprints (6 bytes) and
--   dead-ids (8 bytes, or none in a claim) are binary.
--
-- The answer is a list with a string for each operation: a letter, the server's
-- clock (6 bytes), and the record as it now is, empty when there is none; or "!"
-- and the server's error. The letters:
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

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local HEAD = '>c1I5c6I2I2B'
local SIZE = {p = 44, w = 22, x = 36}
local DONE_SHORT, DONE_LONG = 20, 24
-- What releasing a processing record does; the last byte before its tail.
local UNDO_DELETE, UNDO_RESTORE, UNDO_NONE = '\0', '\1', '\2'

-- What is worked on: the key, where in ARGV the operation's own words begin, and
-- whether an outcome of the record's was ever unknown.
local key, base, unknown

local function answer(letter, record)
  return letter .. struct.pack('>I6', now) .. record
end

local function write(record, retention)
  redis.call('SET', key, record, 'PX', retention)
  return answer('a', record)
end

-- A time is stored as its last 40 bits; it is the one nearest to now that ends
-- in them, which is right for 17 years to either side. Packing cuts them off.
local function nearest(bits)
  return now + (bits - now + 2^39) % 2^40 - 2^39
end

-- Counters stop at the end of their width: a wrapped counter would start anew.
local function more(counter, limit)
  return math.min(counter + 1, limit)
end

-- The state's letter, in upper case once any outcome was unknown. Unknown is
-- sticky: every later request is flagged to the service, unless it says by a
-- lookup that there was no work ("clear").
local function letter(state_letter)
  if unknown then
    return string.upper(state_letter)
  end
  return state_letter
end

local function operate()
  local operation = ARGV[base + 1]

  if operation == 'claim' then
    local token, fingerprint, retention = ARGV[base + 2], ARGV[base + 3], ARGV[base + 7]
    local times = struct.pack('>I5I5', now + ARGV[base + 5], now + ARGV[base + 6])

    -- Fresh: nobody has had this ID, or its retention is over.
    local fresh = struct.pack(HEAD, 'p', now, fingerprint, 1, 0, 0) .. token .. times .. UNDO_DELETE
    if redis.call('SET', key, fresh, 'NX', 'PX', retention) then
      return answer('c', fresh)
    end
  end

  local found = redis.call('GET', key)
  unknown = false
  local kind, token_found
  local state, first, fingerprint_found, attempts, deferred, unknowns
  if found then
    kind = string.lower(string.sub(found, 1, 1))
    local size = SIZE[kind]
    if kind == 'd' and (#found == DONE_SHORT or #found == DONE_LONG) then
      fingerprint_found = string.sub(found, 7, 12) -- nothing else of it is looked at
    elseif size and (#found == size or kind == 'p' and #found > size) then
      state, first, fingerprint_found, attempts, deferred, unknowns = struct.unpack(HEAD, found)
      first, unknown = nearest(first), state ~= kind
      if kind == 'p' then
        token_found = string.sub(found, 18, 33)
      end
    else
      error('NORECORD the key holds no rabbitonce record; use a DEDUP_PREFIX of its own', 0)
    end
  end

  if operation == 'claim' then
    local token, fingerprint, compare = ARGV[base + 2], ARGV[base + 3], ARGV[base + 4] == '1'
    local retention, dead_id = ARGV[base + 7], ARGV[base + 8]
    local times = struct.pack('>I5I5', now + ARGV[base + 5], now + ARGV[base + 6])

    -- 1. Our own claim, repeated: its reply was lost, or the holder asks again
    -- right before the request. The same attempt, a new lease, and what a
    -- release would restore stays.
    if token_found == token then
      local record = string.sub(found, 1, 33) .. times .. string.sub(found, 44)
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
      if dead_id ~= string.sub(found, 19, 26) then
        return answer('x', found)
      end
      -- The request whose outcome is unknown may still be at work, as in "wait".
      if now < nearest((struct.unpack('>I5', found, 32))) then
        return answer('w', found)
      end
      attempts, deferred, unknowns, first = 0, 0, 0, now
      undo = found
    elseif kind == 'p' then
      -- 4. Somebody else's. It is taken over when its lease has run out and the
      -- deadline of its request has passed: the holder may be gone while the
      -- service still works on it. What became of that request is unknown.
      local lease, deadline = struct.unpack('>I5I5', found, 34)
      if now < math.max(nearest(lease), nearest(deadline)) then
        return answer('b', found)
      end
      unknowns, unknown = more(unknowns, 255), true
      -- An undo never nests: the record that was taken over loses its own.
      undo = string.sub(found, 1, 43) .. UNDO_NONE
    else
      -- 5. Waiting: no copy jumps the ladder.
      if now < nearest((struct.unpack('>I5', found, 18))) then
        return answer('w', found)
      end
      undo = found
    end

    local head = struct.pack(HEAD, letter('p'), first, fingerprint, more(attempts, 65535), deferred, unknowns)
    local record = head .. token .. times .. UNDO_RESTORE .. undo
    redis.call('SET', key, record, 'PX', retention)
    return answer('c', record)
  end

  if operation == 'succeed' then
    local status, fingerprint, retention = ARGV[base + 2], ARGV[base + 3], ARGV[base + 4]
    -- The first success stays as it is. It is written again all the same: whoever
    -- repeats it because too few replicas had it waits for them once more, and a
    -- server waits for writes only.
    if kind == 'd' then
      redis.call('SET', key, found, 'PX', retention)
      return answer('d', found)
    end
    -- Unconditional, whatever the record: the work is done, and whoever claims
    -- the ID next must hear of it.
    if not found then
      first, attempts, deferred, unknowns = now, 1, 0, 0
    end
    local counters = struct.pack('>B', attempts)
    if attempts > 255 or deferred > 0 or unknowns > 0 then
      counters = struct.pack('>I2I2B', attempts, deferred, unknowns)
    end
    return write(struct.pack('>c1I5c6I5I2', letter('d'), first, fingerprint, now, status) .. counters, retention)
  end

  if operation == 'undead' then
    -- After the dead letter is safe and its delivery acked, the record goes, so
    -- that a message put back by any tool is processed again. But not when an
    -- outcome was ever unknown: then only its dead-id, or an operator, opens it.
    if kind == 'x' and not unknown and string.sub(found, 19, 26) == ARGV[base + 2] then
      redis.call('DEL', key)
      return answer('a', '')
    end
    return answer(kind == 'd' and 'd' or 'n', found or '')
  end

  if operation == 'forget' then
    -- An operator's, and the only one that deletes whatever the record says. Only
    -- what the operator was shown: a claim or a result that came since stays.
    if found == ARGV[base + 2] then
      redis.call('DEL', key)
      return answer('a', '')
    end
    return answer(kind == 'd' and 'd' or 'n', found or '')
  end

  -- A bury that is repeated, since its reply was lost, has been applied.
  if operation == 'bury' and kind == 'x' and string.sub(found, 19, 26) == ARGV[base + 4] then
    return answer('a', found)
  end

  -- From here on the holder speaks. Anyone else changes nothing, and is told
  -- whether the work is done.
  if token_found ~= ARGV[base + 2] or not found then
    return answer(kind == 'd' and 'd' or 'n', found or '')
  end

  if operation == 'renew' then
    -- The lease alone: the deadline is the request's and does not move.
    return write(string.sub(found, 1, 33) .. struct.pack('>I5', now + ARGV[base + 3]) .. string.sub(found, 39), ARGV[base + 4])
  end

  if operation == 'clear' then
    -- The service was asked, and said that no request for this ID has worked or
    -- is at work: what was unknown is known now. Only a release, which undoes the
    -- claim with all that came of it, brings the flag back.
    return write(struct.pack(HEAD, 'p', first, fingerprint_found, attempts, deferred, 0) .. string.sub(found, 18), ARGV[base + 3])
  end

  if operation == 'wait' then
    local class, not_before = ARGV[base + 4], now + ARGV[base + 3]
    if class == 'deferred' then
      deferred = more(deferred, 65535)
    elseif class == 'unknown' then
      -- The request may still be at work: nobody repeats it before its deadline.
      unknowns, unknown = more(unknowns, 255), true
      not_before = math.max(not_before, nearest((struct.unpack('>I5', found, 39))))
    end
    return write(struct.pack(HEAD, letter('w'), first, fingerprint_found, attempts, deferred, unknowns)
      .. struct.pack('>I5', not_before), ARGV[base + 5] + not_before - now) -- it must outlive the wait
  end

  if operation == 'bury' then
    -- Before the letter is published: from now on no copy is run, only
    -- published again.
    local not_before = now
    if ARGV[base + 5] == '1' then
      unknowns, unknown = more(unknowns, 255), true
      not_before = math.max(now, nearest((struct.unpack('>I5', found, 39))))
    end
    return write(struct.pack(HEAD, letter('x'), first, fingerprint_found, attempts, deferred, unknowns)
      .. struct.pack('>B', ARGV[base + 3]) .. ARGV[base + 4] .. struct.pack('>I5I5', now, not_before), ARGV[base + 6])
  end

  if operation == 'release' then
    -- No request began: everything is as the claim found it, and only a record
    -- that this claim created is deleted.
    local undo = string.sub(found, 44, 44)
    if undo == UNDO_DELETE then
      redis.call('DEL', key)
      return answer('a', '')
    elseif undo == UNDO_RESTORE then
      return write(string.sub(found, 45), ARGV[base + 3])
    end
    return answer('n', found)
  end

  error('NOOPERATION ' .. tostring(operation), 0)
end

-- An operation that fails, on a key that holds something else, say, fails alone.
local function attempt()
  local done, answered = pcall(operate)
  if done then
    return answered
  end
  -- Redis 7 has a table; 6.2 has a text, and where in the script before it.
  local text = type(answered) == 'table' and answered.err or answered
  return '!' .. string.gsub(text, '^@user_script: ?%d+: ?%-?', '')
end

local answers = {}
base = 0
for i = 1, #KEYS do
  key = KEYS[i]
  local words = ARGV[base + 1]
  base = base + 1
  answers[i] = attempt()
  base = base + words
end
return answers
