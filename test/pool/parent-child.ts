/** A process with a pool, for tests of what becomes of its children: `parent-child.ts PROGRAM WORKER FILE SILENCE_MS KIND`. */
import { AbortFlag } from '../../src/core/async/abort-flag.ts'
import { ChildPool, poolSettings } from '../../src/pool/index.ts'

const [program = '', worker = '', file = '', silenceMs = '0', kind = 'grandchild'] = process.argv.slice(2)
const pool = new ChildPool({
  ...poolSettings({ max: 2, min: 2 }),
  ...{ worker, program, settings: {}, silenceMs: Number(silenceMs) },
  workLeftMs: () => Number.POSITIVE_INFINITY,
  assertFacts: () => undefined,
  onEvent: () => undefined,
  onLine: () => undefined,
  onDroppedLines: () => undefined,
})
await pool.start()
await pool
  .run({
    ...{
      work: { kind, file },
      onNote: () => undefined,
      onAsk: async () => undefined,
      stop: new AbortFlag(),
      kill: new AbortFlag(),
    },
    ...{ graceMs: 1_000, isFresh: false, memory: undefined, onAssigned: () => undefined },
  })
  .catch(() => undefined)
