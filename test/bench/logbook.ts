/** Transitions recorded per second, one flow at a time and 100 side by side. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { v7 as uuidv7 } from 'uuid'
import { openPersistence } from '../../src/persistence/index.ts'
import { printRates, type Rate, rate } from './rates.ts'

const WRITES = 6

export default async function logbook(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-bench-'))
  try {
    const rates: Rate[] = []
    for (const uri of [`directory:${folder}`, 'memory:']) {
      for (const width of [1, 100]) rates.push(await transitions(uri, { width, flows: width === 1 ? 200 : 1_000 }))
    }
    printRates(`transitions, ${WRITES} and an acquire per flow`, rates)
  } finally {
    await rm(folder, { recursive: true })
  }
}

async function transitions(uri: string, options: { width: number; flows: number }): Promise<Rate> {
  const { width, flows } = options
  await using persistence = await openPersistence(uri)
  const what = `${uri.split(':')[0]}, ${width} side by side`
  const { perSecond } = await rate(what, { count: flows, width }, async () => {
    const uuid = uuidv7()
    const book = { uuid, name: 'bench' }
    await using log = await persistence.acquire({
      book,
      flow: { uuid, name: 'bench', version: '1.0' },
      run: 1,
      claim: uuid,
    })
    for (let n = 0; n < WRITES; n += 1) await log.write({ meta: { n } })
  })
  return { what, perSecond: perSecond * WRITES }
}
