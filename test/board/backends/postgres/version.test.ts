import { expect, test } from 'vitest'
import { openBoardRow } from '../../../../src/board/backends/postgres/store/schema.ts'
import { IncompatibleVersion } from '../../../../src/core/errors.ts'
import { rejectionOf } from '../../events.ts'

test('a Postgres that is too old for boards is refused before anything is made in it', async () => {
  const asked: string[] = []
  const driver = {
    query: async (text: string) => {
      asked.push(text)
      return { rows: [{ version: '120022', there: false }] }
    },
  }
  expect(await rejectionOf(openBoardRow(driver, { schema: 'jobboard', name: 'x' }))).toBeInstanceOf(IncompatibleVersion)
  expect(asked).toHaveLength(1)
})
