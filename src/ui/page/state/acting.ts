/** Actions on the board: asks, sends the request, reports the result, and reads the page again. */
import type { BulkBody, WireBulkResult, WireDone } from '../../wire/actions.ts'
import { texts } from '../texts.ts'
import { send } from './api.ts'
import { type Answer, ask, type Question, say } from './asking.ts'
import { emitChange } from './changes.ts'
import { formatNumber } from './format.ts'
import { href, place } from './router.ts'
import { onBoard } from './session.ts'

/** The most jobs that can be changed without typing their number. */
const MAX_UNTYPED = 100

/**
 * Asks, does an action of the present board, and reports the result. Resolves to whether it was done.
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
  const work = async (answer: Answer): Promise<true> => {
    const body = toBody(answer)
    try {
      const { text, uuids = [] } = await send<WireDone>(onBoard(path), body)
      const [uuid] = uuids
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

/** Counts the jobs, shows their number, asks, and changes at most as many jobs. Resolves to whether it was done. */
export async function actOnMany(action: BulkBody['action'], target: Target): Promise<boolean> {
  const request = (rest: Partial<BulkBody>) => send<WireBulkResult>(onBoard('bulk'), { action, ...target, ...rest })
  const counted = await request({ dryRun: true }).catch(sayFault)
  if (counted === false) return false
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
      const { done, failed, left } = await request({ expected: matched, ...(reason ? { reason } : {}) })
      const [first] = failed
      if (first !== undefined) say('fault', texts.bulk.failed(formatNumber(failed.length), first.message))
      if (left > 0) say('fault', texts.bulk.left(formatNumber(left)))
      if (done > 0) say('done', texts.bulk.done[action](formatNumber(done)))
      return done > 0
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
