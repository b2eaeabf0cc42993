/**
 * What an answer proves by who gave it (see `lease.ts`). Whatever comes from the leader is an echo; a proof is what it
 * answers only when most servers have agreed.
 */
import { OPCODE } from './opcodes.ts'

/** Where a request's operation stands in its frame: behind the length and the request number. */
const OPCODE_AT = 8

/** Every follower hands these to the leader, and it answers when most servers have agreed, also to what it refuses. */
const WRITES: ReadonlySet<number> = new Set([
  OPCODE.create,
  OPCODE.create2,
  OPCODE.createContainer,
  OPCODE.createTtl,
  OPCODE.delete,
  OPCODE.setData,
  OPCODE.setAcl,
  OPCODE.multi,
])

const NO_AUTH = -102

/** Refusals that only the leader can speak, from what is committed; most others may be a follower's own. */
const LEADERS_REFUSALS: ReadonlySet<number> = new Set([0, -101, NO_AUTH, -103, -108, -110, -111])

export function leaderSays(frame: Buffer, code: number): 'echo' | 'proof' | undefined {
  return answerProves(frame.readInt32BE(OPCODE_AT), code)
}

export function answerProves(opcode: number, code: number): 'echo' | 'proof' | undefined {
  if (opcode === OPCODE.sync && code === 0) return 'echo'
  return WRITES.has(opcode) && LEADERS_REFUSALS.has(code) ? 'proof' : undefined
}
