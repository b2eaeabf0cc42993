/** Actions on the board: asked for, sent, reported, and the page read again. */
import type { BulkBody, WireBulkResult, WireDone } from '../../wire/actions.ts'
import { texts } from '../texts.ts'
import { send } from './api.ts'
import { type Answer, ask, type Question, say } from './asking.ts'
import { emitChange } from './changes.ts'
import { formatNumber } from './format.ts'
import { onBoard } from './session.ts'

/** The most jobs on which an action is done without typing their number. */
const MAX_UNTYPED = 100

/**
 * Asks, does an action of the present board, and says how it went. Resolves to whether it was done.
 *
 * @param path the endpoint, relative to the board's
 * @param toBody makes the body of what was entered
 */
export async function act(
  path: string,
  question: Question | undefined,
  toBody: (answer: Answer) => object,
  done: string,
): Promise<boolean> {
  const answer = question === undefined ? {} : await ask(question)
  if (answer === undefined) return false
  return report(async () => {
    const { text } = await send<WireDone>(onBoard(path), toBody(answer))
    return text ?? done
  })
}

/** Which jobs a bulk action is for. */
export type Target = Pick<BulkBody, 'uuids' | 'query'>

/** Counts the jobs, shows the number, asks, acts on no more than these. Resolves to whether it was done. */
export async function actOnMany(action: BulkBody['action'], target: Target): Promise<boolean> {
  const request = (rest: Partial<BulkBody>) => send<WireBulkResult>(onBoard('bulk'), { action, ...target, ...rest })
  let counted: WireBulkResult
  try {
    counted = await request({ dryRun: true })
  } catch (error) {
    say('fault', (error as Error).message)
    return false
  }
  const { matched, more } = counted
  if (matched === 0) {
    say('fault', texts.bulk.none)
    return false
  }
  const answer = await ask({
    title: texts.bulk.title[action](formatNumber(matched)),
    text: more ? texts.bulk.more(formatNumber(matched)) : texts.bulk.text[action],
    yes: texts.bulk.yes[action](formatNumber(matched)),
    typed: matched > MAX_UNTYPED ? matched : undefined,
    reason: action !== 'restore',
    danger: action !== 'restore',
  })
  if (answer === undefined) return false
  return report(async () => {
    const reason = answer['reason'] ? { reason: answer['reason'] } : {}
    const { done, failed } = await request({ expected: matched, ...reason })
    const [first] = failed
    if (first !== undefined) say('fault', texts.bulk.failed(formatNumber(failed.length), first.message))
    return texts.bulk.done[action](formatNumber(done))
  })
}

async function report(work: () => Promise<string>): Promise<boolean> {
  try {
    say('done', await work())
    return true
  } catch (error) {
    say('fault', (error as Error).message)
    return false
  } finally {
    emitChange('all')
  }
}
