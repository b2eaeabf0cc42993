/**
 * What an answer proves by who gave it (see `session/lease.ts`). Whatever comes from the leader is an echo; a proof is what it
 * answers only when most servers have agreed.
 */
import { OPCODE } from '../protocol/opcodes.ts'

/** Where a request's operation stands in its frame: behind the length and the request number. */
const OPCODE_OFFSET = 8

/** Every follower hands these to the leader, and it answers when most servers have agreed, also to what it refuses. */
const WRITE_OPCODES: ReadonlySet<number> = new Set([
  OPCODE.create,
  OPCODE.create2,
  OPCODE.createContainer,
  OPCODE.createTtl,
  OPCODE.delete,
  OPCODE.setData,
  OPCODE.setAcl,
  OPCODE.multi,
])

const NO_AUTH_CODE = -102

/** Refusals that only the leader can speak, from what is committed; most others may be a follower's own. */
const LEADER_ONLY_CODES: ReadonlySet<number> = new Set([0, -101, NO_AUTH_CODE, -103, -108, -110, -111])

export function toQuorumAck(frame: Buffer, code: number): 'echo' | 'proof' | undefined {
  return isQuorumAck(frame.readInt32BE(OPCODE_OFFSET), code)
}

export function isQuorumAck(opcode: number, code: number): 'echo' | 'proof' | undefined {
  if (opcode === OPCODE.sync && code === 0) return 'echo'
  return WRITE_OPCODES.has(opcode) && LEADER_ONLY_CODES.has(code) ? 'proof' : undefined
}
