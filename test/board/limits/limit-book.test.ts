/** The limits are followed as long as somebody uses them. */
import { expect, test } from 'vitest'
import { LimitBook } from '../../../src/board/limits/limit-book.ts'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { NotConnected } from '../../../src/core/errors.ts'
import { rejectionOf } from '../events.ts'
import { fakeBackend } from '../override-role.ts'

/** A book of a board without limits so far, which counts its watches. */
function bookOf({ reading = async () => undefined }: { reading?: () => Promise<void> } = {}) {
  let watches = 0
  let reads = 0
  const book = new LimitBook({
    backend: fakeBackend({
      shared: false,
      clock: { now: () => 0 },
      limits: {
        revision: async () => {
          reads += 1
          await reading()
          return 0
        },
      },
    }),
    records: {
      of: () => {
        throw new Error('there are no records')
      },
      watch: async () => {
        watches += 1
        const end = async () => {
          watches -= 1
        }
        return { [Symbol.asyncDispose]: end }
      },
    },
    onRules: () => undefined,
    onError: (error) => {
      throw error
    },
  })
  return { book, watches: () => watches, reads: () => reads }
}

test('the limits are followed until the last user closes them', async () => {
  const { book, watches, reads } = bookOf()
  await Promise.all([book.open('view'), book.open('tokens')])
  expect([watches(), reads()]).toEqual([3, 1])
  book.close('view')
  expect([watches(), book.revision]).toEqual([3, 0])
  book.close('tokens')
  expect([watches(), book.revision]).toEqual([0, undefined])
  await book.open('tokens')
  expect([watches(), reads()]).toEqual([3, 2])
})

test('limits that could not be read are not followed, until they are opened again', async () => {
  const failing = Promise.reject(new NotConnected('away'))
  const { book, watches } = bookOf({ reading: () => failing })
  expect(await rejectionOf(book.open('tokens'))).toBeInstanceOf(NotConnected)
  expect([watches(), book.revision]).toEqual([0, undefined])
})

test('limits that are closed while they are read again are not followed, and are read when they are opened', async () => {
  let reading = Promise.resolve()
  const { book, watches, reads } = bookOf({ reading: () => reading })
  await book.open('view')
  const again = createDeferred()
  reading = again.promise
  const refreshed = book.refresh()
  book.close('view')
  again.resolve()
  await refreshed
  expect([watches(), book.revision]).toEqual([0, undefined])
  await book.open('view')
  expect([watches(), reads(), book.revision]).toEqual([3, 3, 0])
})

test('limits that are closed while they are read are not followed', async () => {
  const reading = createDeferred()
  const { book, watches } = bookOf({ reading: () => reading.promise })
  const opening = book.open('view')
  book.close('view')
  reading.resolve()
  await opening
  expect([watches(), book.revision]).toEqual([0, undefined])
})
