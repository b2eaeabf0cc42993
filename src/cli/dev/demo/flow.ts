/** The flow of the demo: three short tasks for a photo; each writes a file. Conductors load it by its path. */
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { sleep } from '../../../core/time.ts'
import { type Context, input, linear, task } from '../../../flow/index.ts'
import { flowName, formatLine, TAG_VARIABLE, type TaskLine, type TaskName } from './script.ts'

/** Half the duration of a task, long enough for people to follow. */
const HALF_TASK_MS = 150

const PHOTO_BYTES = 65_536

const fetch = task('fetch', {
  requires: ['photo', 'folder'],
  provides: 'original',
  execute: ({ photo, folder }: { photo: string; folder: string }, ctx) =>
    runPaced('fetch', ctx, () => writeFileTo(join(folder, `${photo}.raw`), randomBytes(PHOTO_BYTES))),
})

const resize = task('resize', {
  requires: ['original'],
  provides: 'small',
  execute: ({ original }: { original: string }, ctx) =>
    runPaced('resize', ctx, async () => {
      const pixels = await readFile(original)
      const small = pixels.filter((_, index) => index % 4 === 0)
      return writeFileTo(original.replace(/raw$/, 'small'), small)
    }),
})

const pack = task('pack', {
  requires: ['small'],
  provides: 'packed',
  execute: ({ small }: { small: string }, ctx) =>
    runPaced('pack', ctx, async () => writeFileTo(`${small}.gz`, gzipSync(await readFile(small)))),
})

export const demo = linear(
  flowName(process.env[TAG_VARIABLE] ?? ''),
  input<{ photo: string; folder: string }>(),
  fetch,
  resize,
  pack,
)

async function runPaced<T>(name: TaskName, ctx: Context, work: () => Promise<T>): Promise<T> {
  const { job, run, signal } = ctx
  const say = (step: TaskLine['step']) =>
    process.stdout.write(formatLine({ step, task: name, job: job?.name ?? '', run, pid: process.pid }))
  say('begun')
  await sleep(HALF_TASK_MS, { signal })
  say('halfway')
  const result = await work()
  await sleep(HALF_TASK_MS, { signal })
  say('finished')
  return result
}

async function writeFileTo(file: string, content: Uint8Array): Promise<string> {
  await writeFile(file, content)
  return file
}
