/** Commands that let the jobs of a key start again, for people who copy them. */
import type { LimitStop, LimitView } from '../board/index.ts'
import { isQueueKey, toQueueOfKey } from '../board/internal.ts'
import type { Redactor } from '../core/redaction.ts'
import { exactDuration } from '../views/index.ts'
import { shellWord } from './output/render/text.ts'

/** Returns the command that ends the hold of a key. */
export function resumeCommand(key: string): string {
  if (isQueueKey(key) && !key.endsWith('*')) return `jobboard resume --queue ${shellWord(toQueueOfKey(key))}`
  return `jobboard limits resume ${shellWord(key)}`
}

/** Returns lines about what still stops a key after its own hold has ended, each with the command that ends it. */
export function stillStoppedLines(stops: readonly LimitStop[], redaction: Redactor): string[] {
  const howToEnd = ({ held, ...limit }: LimitView) => (held ? resumeCommand(limit.key) : openCommand(limit))
  return stops.map(({ text, limit }) => {
    // A limit of a newer release cannot be read, so nothing is known of how it ends.
    const end = limit.error ? '' : `; ${howToEnd(limit)} ends it`
    return `still stopped: ${redaction.text(text)}${end}`
  })
}

/** Returns the command that lets jobs of a limit start one at a time, and leaves the rest of the limit as it is. */
export function openCommand({ key, rate, fair }: Pick<LimitView, 'key' | 'rate' | 'fair'>): string {
  const options = [
    '--concurrency 1',
    ...(rate ? [`--rate ${rate.limit}/${exactDuration(rate.perMs)}`] : []),
    ...(rate && rate.burst !== 1 ? [`--burst ${rate.burst}`] : []),
    ...(fair ? ['--fair'] : []),
  ]
  return `jobboard limits set ${shellWord(key)} ${options.join(' ')}`
}
