/**
 * Which answers went through the leader while it was the leader, and therefore prove what the ensemble knows (see
 * `lease.ts`). A sync is none of them: a leader that was deposed and does not know yet answers it by itself.
 */
import { OPCODE } from './opcodes.ts'

/** Where a request's operation stands in its frame: behind the length and the request number. */
const OPCODE_AT = 8

/** Every follower hands these to the leader, and it answers when most servers have agreed, also to what it refuses. */
const LEADERS_OWN: ReadonlySet<number> = new Set([
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

export function wentThroughLeader(frame: Buffer, code: number): boolean {
  return LEADERS_REFUSALS.has(code) && LEADERS_OWN.has(frame.readInt32BE(OPCODE_AT))
}
