/** The text that a run prints at its end. */
import type { Result } from './archive.ts'
import { logbooksUri } from './output.ts'
import { count, pathFromHere, printableBytes, printableUri } from './printable.ts'
import { painter } from './progress.ts'
import type { Summary } from './summary.ts'
import type { Named } from './tally.ts'

/** The number of names that are printed; `summary.json` has all of them. */
const MOST_NAMES = 20

export function report({ ending, summary, output, persistence, left }: Result): string {
  const paint = painter(process.stdout)
  const { files, bytesIn, bytesOut, seconds, jobsPerSecond, failures, leftOut } = summary
  const archived = `${count(files, 'file')}, ${printableBytes(bytesIn)} in, ${printableBytes(bytesOut)} out`
  const alarm = failures.length > 0 ? 'red' : 'bold'
  const lines = [
    paint('bold', line('archived', `${archived}, ${seconds.toFixed(1)} s, ${jobsPerSecond} jobs per second`)),
    paint(alarm, line('failed', String(failures.length))),
    ...list(failures),
  ]
  if (leftOut.length > 0) lines.push(line('left out', String(leftOut.length)), ...list(leftOut))
  if (ending !== 'done') lines.push(line('not done', notDone(summary)))
  if (ending === 'alone') lines.push(paint('red', line('', 'because no conductor is left')))
  if (left.jobs !== 0) lines.push(line('', whatIsLeft(left)))
  lines.push(
    line('archive', pathFromHere(output.files)),
    line('manifest', pathFromHere(output.manifestFile)),
    line('summary', pathFromHere(output.summaryFile)),
    line('logbooks', persistence === logbooksUri(output) ? pathFromHere(output.logbooks) : printableUri(persistence)),
  )
  return lines.join('\n')
}

function notDone({ unfinished, allFound }: Summary): string {
  return `${count(unfinished.length, 'file')}${allFound ? '' : ', and those that were not found yet'}`
}

function line(title: string, text: string): string {
  return `${title.padEnd(10)}${text}`
}

function list(things: readonly Named[]): string[] {
  const shown = things.slice(0, MOST_NAMES).map(({ name, reason }) => `  ${name || '.'}: ${reason}`)
  const more = things.length - shown.length
  return more > 0 ? [...shown, `  and ${more} more, see summary.json`] : shown
}

function whatIsLeft({ jobs, flow, board }: Result['left']): string {
  const many =
    jobs === undefined ? 'jobs of this run may be' : `${count(jobs, 'job')} of this run ${jobs === 1 ? 'is' : 'are'}`
  return `${many} left on ${board}, as flow ${flow}`
}
