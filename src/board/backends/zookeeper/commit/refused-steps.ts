/** What a server's refusal of a step means for the board. */
import { ClaimLost, Duplicate, NotFound, Unclaimable } from '../../../../core/errors.ts'
import { BadVersion, NodeExists, NoNode, NotEmpty, type ZooKeeperError } from '../../../../zookeeper/index.ts'
import type { TransactionStep } from './transactions.ts'

/** The step that was refused, or the check beside a batch of them. */
type RefusedStep = TransactionStep | 'guard' | undefined

export function isKeyTaken(error: ZooKeeperError, step: RefusedStep): boolean {
  if (step === undefined || step === 'guard') return false
  if (step.subject === 'posting') return error instanceof NodeExists
  return step.subject === 'key' && [NodeExists, BadVersion, NoNode].some((type) => error instanceof type)
}

export function notClaimedError(what: string, cause: ZooKeeperError, refused: RefusedStep): Error {
  const step = refused === 'guard' ? undefined : refused
  if (step?.subject === 'posting' && cause instanceof NoNode) {
    return new NotFound(`${what}: it has left the board`, { cause })
  }
  if (step?.subject === 'resource' && (cause instanceof NotEmpty || cause instanceof NodeExists)) {
    return new Unclaimable(`${what}: another job holds resource ${step.resource}`, { cause })
  }
  const raced = cause instanceof BadVersion || cause instanceof NodeExists
  return raced ? new Unclaimable(`${what}: it was claimed or changed by another`, { cause }) : cause
}

/** Only the posting and the lock prove that a claim is gone; a server that says no for another reason leaves it as it is. */
export function notSettledError(what: string, cause: ZooKeeperError, step: RefusedStep): Error {
  const about = step === 'guard' ? undefined : step?.subject
  const gone = (about === 'posting' || about === 'lock') && (cause instanceof BadVersion || cause instanceof NoNode)
  return gone ? new ClaimLost(`${what}: the claim is gone; stop and write nothing`, { cause }) : cause
}

/**
 * Of what makes an entry in the trash. Its first step checks that the posting is there, so an entry that is in its way is not
 * that of another who trashed the job a moment before.
 */
export function alreadyTrashedError(
  what: string,
  id: string,
  cause: ZooKeeperError,
  step: RefusedStep,
): Duplicate | undefined {
  const there = step !== 'guard' && step?.subject === 'trash' && cause instanceof NodeExists
  return there ? new Duplicate(`${what}: the trash holds ${id} already; remove one of the two`, { cause }) : undefined
}

export function notInTrashError(what: string, cause: ZooKeeperError): Error {
  const gone = cause instanceof NoNode || cause instanceof BadVersion
  return gone ? new NotFound(`${what}: it is not in the trash any more`, { cause }) : cause
}

/** Only a posting that is not there proves that the job has left; a folder of the board may be missing, too. */
export function notCancelledError(what: string, cause: ZooKeeperError, step: RefusedStep): Error {
  const gone = step !== 'guard' && step?.subject === 'posting' && cause instanceof NoNode
  return gone ? new NotFound(`${what}: it has left the board`, { cause }) : cause
}
