/** Errors of the board for steps that the server refused. */
import { Duplicate } from '../../../../core/errors.ts'
import { BadVersion, NodeExists, NoNode, NotEmpty, type ZooKeeperError } from '../../../../zookeeper/index.ts'
import { refusalError } from '../../../contract/refusals.ts'
import type { TransactionStep } from './transactions.ts'

/** The step that was refused, or the guard of the batch. */
type RefusedStep = TransactionStep | 'guard' | undefined

/** Whether the step was refused because the key, or the number of the posting, is taken. */
export function isKeyTaken(error: ZooKeeperError, step: RefusedStep): boolean {
  if (step === undefined || step === 'guard') return false
  if (step.subject === 'posting') return error instanceof NodeExists
  return step.subject === 'key' && [NodeExists, BadVersion, NoNode].some((type) => error instanceof type)
}

/** Returns the error for a refused claim or discard. */
export function notClaimedError(what: string, cause: ZooKeeperError, refused: RefusedStep): Error {
  const step = refused === 'guard' ? undefined : refused
  if (step?.subject === 'posting' && cause instanceof NoNode) {
    return refusalError(what, { why: 'gone' }, cause)
  }
  if (step?.subject === 'resource' && (cause instanceof NotEmpty || cause instanceof NodeExists)) {
    return refusalError(what, { why: 'resource', resource: step.resource }, cause)
  }
  const raced = cause instanceof BadVersion || cause instanceof NodeExists
  return raced ? refusalError(what, { why: 'changed' }, cause) : cause
}

/**
 * Returns the error for a refused settle. Only the posting and the lock prove that a claim is lost; a refusal for
 * another reason does not change the claim.
 */
export function notSettledError(what: string, cause: ZooKeeperError, step: RefusedStep): Error {
  const about = step === 'guard' ? undefined : step?.subject
  const gone = (about === 'posting' || about === 'lock') && (cause instanceof BadVersion || cause instanceof NoNode)
  return gone ? refusalError(what, { why: 'lost' }, cause) : cause
}

/**
 * Returns Duplicate if the trash already holds an entry of this job. The first step of such a transaction checks that
 * the posting exists, so the entry does not come from another client that trashed the job a moment before.
 */
export function alreadyTrashedError(
  what: string,
  id: string,
  cause: ZooKeeperError,
  step: RefusedStep,
): Duplicate | undefined {
  const there = step !== 'guard' && step?.subject === 'trash' && cause instanceof NodeExists
  return there ? new Duplicate(`${what}: the trash already holds ${id}; remove one of the two`, { cause }) : undefined
}

/** Returns the error for a refused restore or purge. */
export function notInTrashError(what: string, cause: ZooKeeperError): Error {
  const gone = cause instanceof NoNode || cause instanceof BadVersion
  return gone ? refusalError(what, { why: 'not in trash' }, cause) : cause
}

/**
 * Returns the error for a refused cancel. Only a missing posting proves that the job has left the board: the reason may
 * also be a missing folder.
 */
export function notCancelledError(what: string, cause: ZooKeeperError, step: RefusedStep): Error {
  const gone = step !== 'guard' && step?.subject === 'posting' && cause instanceof NoNode
  return gone ? refusalError(what, { why: 'gone' }, cause) : cause
}
