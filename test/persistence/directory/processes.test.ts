/** `directory:DIR` shared by real processes, and killed with them. */
import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { ClaimLost, Fenced } from '../../../src/core/errors.ts'
import { openPersistence } from '../../../src/persistence/index.ts'
import { count } from '../../support/counts.ts'
import { usual as test, variant } from '../../variant.ts'
import { atomNames } from '../flows.ts'
import { acknowledgedOf, testDirectory, Writer } from './directories.ts'
import type { Report } from './directory-child.ts'

const RACES = count({ test: 50, long: 1_000 })
const KILLS = count({ test: 20, long: 200 })

variant('two processes race for a flow: the newer run has it, and nothing acknowledged is lost', async () => {
  const uri = `directory:${await testDirectory()}`
  await using persistence = await openPersistence(uri)
  const [one, two] = await Promise.all([Writer.start(uri), Writer.start(uri)])
  const outcomes = new Set<string>()
  for (let round = 0; round < RACES; round++) {
    const uuid = randomUUID()
    const [older, newer] = round % 2 ? [one, two] : [two, one]
    older.order({ uuid, run: 1, writes: 30 })
    const before = round % 3 === 0 ? [] : await older.until('acquired')
    newer.order({ uuid, run: 2, writes: 10 })
    const [olderReports, newerReports] = await Promise.all([
      older.until('refused', 'finished'),
      newer.until('refused', 'finished'),
    ])
    expect(newerReports.at(-1)).toEqual({ told: 'finished' })
    const end = olderReports.at(-1)
    if (end?.told === 'refused') expect([ClaimLost.code, Fenced.code], end.message).toContain(end.code)
    outcomes.add(end?.told === 'refused' ? String(end.code) : 'finished')
    const acknowledged = acknowledgedOf([...before, ...olderReports, ...newerReports])
    const book = await persistence.getBook(uuid)
    expect(atomNames(book)).toEqual(expect.arrayContaining(acknowledged))
    expect(atomNames(book)).toEqual(expect.arrayContaining(handedOver(newerReports)))
    expect(book.flows[0]).toMatchObject({ run: 2, claim: 'claim of run 2' })
  }
  // A race that always ends in the same way is none.
  expect(outcomes).toContain(ClaimLost.code)
})

test('a process killed while it acquires or writes loses nothing it had acknowledged', async () => {
  const uri = `directory:${await testDirectory()}`
  await using persistence = await openPersistence(uri)
  const uuid = randomUUID()
  const acknowledged: string[] = []
  let next = Writer.start(uri)
  for (let run = 1; run <= KILLS; run++) {
    const writer = await next
    if (run < KILLS) next = Writer.start(uri)
    writer.order({ uuid, run })
    const reports = await reportsUntil(writer, { count: (run * 7) % 40 })
    await writer.kill()
    for await (const report of writer) reports.push(report)
    for (const report of reports) {
      if (report.told === 'acquired') expect(report.atoms).toEqual(expect.arrayContaining(acknowledged))
    }
    acknowledged.push(...acknowledgedOf(reports))
    expect(reports.map(({ told }) => told)).not.toContain('refused')
    if (acknowledged.length > 0)
      expect(atomNames(await persistence.getBook(uuid))).toEqual(expect.arrayContaining(acknowledged))
  }
  expect(acknowledged.length).toBeGreaterThan(KILLS)
})

function handedOver(reports: readonly Report[]): string[] {
  return reports.flatMap((report) => (report.told === 'acquired' ? report.atoms : []))
}

/** That many reports after it began to acquire: now while it acquires, now amid its writes. */
async function reportsUntil(writer: Writer, { count }: { count: number }): Promise<Report[]> {
  const reports = await writer.until('acquiring')
  if (count === 0) return reports
  for await (const report of writer) {
    reports.push(report)
    if (reports.length > count) break
  }
  return reports
}
