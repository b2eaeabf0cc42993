/** Actions on the board: asks, sends the request, reports the result, and reads the page again. */
import type { BulkBody, WireBulkResult, WireDone } from '../../wire/actions.ts'
import { texts } from '../texts.ts'
import { send } from './api.ts'
import { type Answer, ask, presentPage, type Question, say } from './asking.ts'
import { emitChange } from './changes.ts'
import { formatNumber } from './format.ts'
import { href, place } from './router.ts'
import { onBoard } from './session.ts'

/** The most jobs that can be changed without typing their number. */
const MAX_UNTYPED = 100

/**
 * Asks for confirmation, sends the request to the present board, and shows the result. Resolves with true if it was done.
 *
 * @param path the endpoint, relative to the board's
 * @param question undefined for an action that needs no question
 * @param toBody returns the body of the request; an error that it throws is shown in the dialog
 */
export async function act(
  path: string,
  question: Question | undefined,
  toBody: (answer: Answer) => object,
  done: string,
): Promise<boolean> {
  // Of the present board: the reader may open another one meanwhile.
  const endpoint = onBoard(path)
  const work = async (answer: Answer): Promise<true> => {
    const body = toBody(answer)
    try {
      const { text, uuids = [] } = await send<WireDone>(endpoint, body)
      const [uuid] = uuids.length === 1 ? uuids : []
      say('done', text ?? done, uuid === undefined || uuid === place.value.id ? undefined : href('jobs', { id: uuid }))
      return true
    } finally {
      emitChange('all')
    }
  }
  if (question !== undefined) return (await ask(question, work)) ?? false
  return work({}).catch(sayFault)
}

/** The jobs of a bulk action. */
export type Target = Pick<BulkBody, 'uuids' | 'query'>

/** Counts the jobs, asks with their number, and changes at most as many. Resolves with true if all of them were tried, and some changed. */
export async function actOnMany(action: BulkBody['action'], target: Target): Promise<boolean> {
  const [endpoint, page] = [onBoard('bulk'), presentPage.value]
  const request = (rest: Partial<BulkBody>) => send<WireBulkResult>(endpoint, { action, ...target, ...rest })
  const counted = await request({ dryRun: true }).catch(sayFault)
  // The reader has gone to another page, where the question would be about nothing.
  if (counted === false || presentPage.value !== page) return false
  const { matched, more } = counted
  if (matched === 0) {
    say('fault', texts.bulk.none)
    return false
  }
  const question = {
    title: texts.bulk.title[action](formatNumber(matched)),
    text: more ? texts.bulk.more(formatNumber(matched)) : texts.bulk.text[action],
    yes: texts.bulk.yes[action](formatNumber(matched)),
    typed: matched > MAX_UNTYPED ? matched : undefined,
    reason: action !== 'restore',
    danger: action !== 'restore',
  }
  const work = async ({ reason }: Answer): Promise<boolean> => {
    try {
      const bound = more ? { limit: matched } : { expected: matched }
      const { done, failed, failures, left } = await request({ ...bound, ...(reason ? { reason } : {}) })
      const [first] = failed
      if (first !== undefined) say('fault', texts.bulk.failed(formatNumber(failures), first.message))
      if (left > 0) say('fault', texts.bulk.left(formatNumber(left)))
      if (done > 0) say('done', texts.bulk.done[action](formatNumber(done)))
      return done > 0 && left === 0
    } finally {
      emitChange('all')
    }
  }
  return (await ask(question, work)) ?? false
}

function sayFault(error: unknown): false {
  say('fault', (error as Error).message)
  return false
}
