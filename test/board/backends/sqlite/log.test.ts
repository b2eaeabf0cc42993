/** The log of a file: it is written back, and its growth beside a long reader is reported. */
import { statSync } from 'node:fs'
import { expect } from 'vitest'
import { openDatabase } from '../../../../src/sqlite/driver.ts'
import { variant } from '../../../variant.ts'
import { sqlitePlace } from './boards.ts'

/** Larger than a page, so that few jobs make a long log. */
const LARGE = { text: 'x'.repeat(500_000) }

variant(
  'beside a program that reads for long the log grows, which is reported, and is written back afterwards',
  async () => {
    await using place = await sqlitePlace({ parameters: 'synchronous=normal' })
    await using board = await place.openUnviewed()
    const errors: string[] = []
    board.on('error', ({ error }) => errors.push(error.message))
    const logSize = () => statSync(`${place.file}-wal`).size
    const post = async (jobs: number) => {
      for (let job = 0; job < jobs; job += 1) await board.post('flow', LARGE)
    }
    const reader = openDatabase(place.file)
    reader.exec('BEGIN; SELECT count(*) FROM jobs')
    // The size is looked at every 50 commits; from 64 MB on it is reported.
    await post(200)
    await expect.poll(() => errors, { timeout: 60_000 }).toHaveLength(1)
    expect(errors[0]).toMatch(
      /jobs\.db: its log jobs\.db-wal has grown to \d+ MB and cannot be written back: another program has a long transaction/,
    )
    reader.exec('COMMIT')
    reader.close()
    await post(50)
    await expect.poll(logSize, { timeout: 60_000 }).toBeLessThan(16_000_000)
    expect(errors).toHaveLength(1)
  },
)
