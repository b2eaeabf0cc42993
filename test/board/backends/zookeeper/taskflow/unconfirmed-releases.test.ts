/** A lock that goes before its posting: what is believed at once, and what one question later. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { UnconfirmedReleases } from '../../../../../src/board/backends/zookeeper/taskflow/unconfirmed-releases.ts'
import type { BoardChange } from '../../../../../src/board/contract/index.ts'
import { createDeferred, type Deferred } from '../../../../../src/core/async/abort.ts'

const changes = (text: string): BoardChange[] =>
  text.split(' ').map((word) => {
    const [kind, id] = word.split(':')
    return { kind, id } as BoardChange
  })

/** What is heard, in order; questions are answered by `answer`. */
function listen() {
  const heard: string[] = []
  const questions: Deferred<void>[] = []
  const hear = (batch: readonly BoardChange[]) => heard.push(...batch.map(({ kind, id }) => `${kind}:${id}`))
  const early = new UnconfirmedReleases({
    sync: () => {
      const question = createDeferred()
      questions.push(question)
      return question.promise
    },
    onReleased: hear,
  })
  return {
    early,
    heard,
    questions,
    tell: (text: string) => hear(early.confirmed(changes(text))),
    answer: async (error?: Error) => {
      const question = questions.shift()
      if (error) question?.reject(error)
      else question?.resolve()
      await nextTurn()
    },
  }
}

test('a lock that goes after its posting changed, or with it, is believed at once', () => {
  const { tell, heard, questions } = listen()
  tell('claimed:a updated:a released:a')
  tell('claimed:b gone:b released:b')
  tell('claimed:c updated:c')
  tell('released:c')
  expect(heard.join(' ')).toBe(
    'claimed:a updated:a released:a claimed:b gone:b released:b claimed:c updated:c released:c',
  )
  expect(questions).toEqual([])
})

test('a lock that goes before its posting was never given back', async () => {
  const { tell, heard, answer } = listen()
  tell('claimed:a released:a')
  tell('gone:a')
  await answer()
  tell('claimed:b released:b gone:b')
  expect(heard.join(' ')).toBe('claimed:a gone:a claimed:b gone:b')
})

test('a lock that goes alone was given back, when the answer says that no more is to come', async () => {
  const { tell, heard, answer } = listen()
  tell('updated:a claimed:a')
  tell('released:a posted:b')
  expect(heard.join(' ')).toBe('updated:a claimed:a posted:b')
  await answer()
  expect(heard.at(-1)).toBe('released:a')
})

test('one that is claimed again meanwhile was given back before, and is not given back again', async () => {
  const { tell, heard, answer } = listen()
  tell('claimed:a released:a claimed:a')
  expect(heard.join(' ')).toBe('claimed:a released:a claimed:a')
  tell('released:a')
  tell('claimed:a released:a')
  await answer()
  expect(heard.join(' ')).toBe('claimed:a released:a claimed:a released:a claimed:a')
  await answer()
  expect(heard.at(-1)).toBe('released:a')
})

test('is settled when every question so far is answered', async () => {
  const { early, tell, answer } = listen()
  await early.whenSettled()
  tell('claimed:a released:a')
  tell('claimed:b released:b')
  let settled = false
  const settling = early.whenSettled().then(() => {
    settled = true
  })
  await answer()
  expect(settled).toBe(false)
  await answer()
  await settling
})

test('after a gap no earlier change is reported; without an answer, and without a gap, all are', async () => {
  const { early, tell, heard, answer } = listen()
  tell('claimed:a released:a')
  early.clear()
  await answer()
  expect(heard).toEqual(['claimed:a'])
  tell('claimed:b released:b')
  await answer(new Error('refused'))
  expect(heard.at(-1)).toBe('released:b')
})
