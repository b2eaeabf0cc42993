/** Jobs after jobs: one splits, several work side by side, one collects their results. One part fails, and is restored. */
import { input, linear, openBoard, openPersistence, startConductor, task } from 'jobboard'

/** The lines of each chapter; a file that is missing has none. */
const files = new Map([
  ['one', 120],
  ['three', 80],
])

const count = linear(
  { name: 'count', keepResults: true, posting: { maxAttempts: 1 } },
  input<{ chapter: string }>(),
  task('read', {
    requires: ['chapter'],
    provides: 'lines',
    execute: async ({ chapter }: { chapter: string }) => {
      const lines = files.get(chapter)
      if (lines === undefined) throw new Error(`chapter ${chapter} is missing`)
      return lines
    },
  }),
)

const report = linear(
  { name: 'report', keepResults: true },
  input<Record<never, never>>(),
  task('add-up', {
    provides: 'text',
    execute: async (_args, { dependencies }) => {
      const ends = await dependencies.read()
      const lines = ends.map(({ results }) => Number(results?.['lines'] ?? 0))
      const failed = ends.filter(({ outcome }) => outcome === 'TRASHED').map(({ name }) => name)
      const missing = failed.length > 0 ? `, without ${failed.join(', ')}` : ''
      return `${lines.reduce((sum, each) => sum + each, 0)} lines${missing}`
    },
  }),
)

await using board = await openBoard('memory:')
await using persistence = await openPersistence('memory:')

const parts = await Promise.all(
  ['one', 'two', 'three'].map((chapter) => board.post(count, { chapter }, { name: `chapter ${chapter}` })),
)

// A draft is wanted in any case. The report needs all parts: it falls with the first that fails.
const draft = await board.post(report, {}, { name: 'draft', after: parts.map(({ uuid }) => ({ uuid, on: 'settled' })) })
const whole = await board.post(report, {}, { name: 'report', after: parts })

// Started here, so that no part has failed before the report is posted: such a post is refused.
await using _conductor = await startConductor({ board, persistence, flows: [count, report] })
console.log('draft:', (await board.result(draft, { flow: report })).results.text)
// The reason names the job that failed, with its uuid.
await whole.wait()
const reason = (await board.findTrashed(whole.uuid))?.reason
console.log('report: in the trash,', reason?.replace(/^.*\((.*)\), on which it depends,/, '$1'))

console.log('chapter two is found, and restored with what depends on it')
files.set('two', 100)
for await (const trashed of board.trashed()) {
  if (trashed.name !== 'chapter two') continue
  const restored = await board.restore(trashed, { dependents: true })
  console.log('restored:', restored.map(({ name }) => name).join(', '))
}
console.log('report:', (await board.result(whole, { flow: report })).results.text)
