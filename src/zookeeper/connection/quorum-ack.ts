/**
 * Classifies answers by what they prove (see `session/lease.ts`). An echo is any answer of the leader; a proof is an
 * answer that the leader gives only after a quorum has agreed.
 */
import { OPCODE } from '../protocol/opcodes.ts'

/** Position of the operation in a frame: after the length and the request number. */
const OPCODE_OFFSET = 8

/**
 * Operations that every follower forwards to the leader, which answers after a quorum has agreed, even with a refusal.
 */
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

/** Codes that only the leader returns, from committed state; most other refusals may come from a follower. */
const LEADER_ONLY_CODES: ReadonlySet<number> = new Set([0, -101, NO_AUTH_CODE, -103, -108, -110, -111])

export function toQuorumAck(frame: Buffer, code: number): 'echo' | 'proof' | undefined {
  return isQuorumAck(frame.readInt32BE(OPCODE_OFFSET), code)
}

export function isQuorumAck(opcode: number, code: number): 'echo' | 'proof' | undefined {
  if (opcode === OPCODE.sync && code === 0) return 'echo'
  return WRITE_OPCODES.has(opcode) && LEADER_ONLY_CODES.has(code) ? 'proof' : undefined
}
