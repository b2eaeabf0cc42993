/** What a conductor gives to tasks: made once, before anything runs, and ended when nothing runs any more. */
import { expect, test } from 'vitest'
import { InvalidArgument } from '../../../src/core/errors.ts'
import {
  type Context,
  input,
  linear,
  openBoard,
  type RevertContext,
  runFlow,
  startConductor,
  task,
} from '../../../src/index.ts'

interface Services {
  readonly said: string[]
}

const say = task('say', {
  requires: ['text'],
  execute: ({ text }: { text: string }, { services }: Context<Services>) => services.said.push(text),
  revert: ({ text }, { services }: RevertContext<number, Services>) => services.said.push(`not ${text}`),
})
const flow = linear('speech', input<{ text: string }>(), say)

test('tasks of every job find what the factory made once, and it ends after the last of them', async () => {
  await using board = await openBoard('memory:')
  const told: string[] = []
  let made = 0
  const services = async () => {
    made += 1
    const disposable = (name: string) => ({ [Symbol.asyncDispose]: async () => void told.push(`${name} ended`) })
    return {
      said: told,
      first: disposable('first'),
      second: { [Symbol.dispose]: () => void told.push('second ended') },
    }
  }
  const conductor = await startConductor({ board, persistence: 'memory:', flows: [flow], services })
  expect(made).toBe(1)
  for (const text of ['one', 'two']) expect(await (await board.post(flow, { text })).wait()).toBe('COMPLETE')
  expect(told.sort()).toEqual(['one', 'two'])
  await conductor.stop()
  await conductor.stop()
  // The last first: a service may need one that was made before it.
  expect(told).toEqual(['one', 'two', 'second ended', 'first ended'])
  expect(made).toBe(1)
})

test('what is disposable as a whole is disposed of as a whole, and a service that cannot end does not disturb others', async () => {
  await using board = await openBoard('memory:')
  const told: string[] = []
  class Whole {
    readonly said = told
    readonly part = { [Symbol.dispose]: () => told.push('part') }
    async [Symbol.asyncDispose](): Promise<void> {
      told.push('whole')
      throw new Error('cannot end')
    }
  }
  const conductor = await startConductor({ board, persistence: 'memory:', flows: [flow], services: () => new Whole() })
  await conductor.stop()
  expect(told).toEqual(['whole'])
  expect(conductor.state).toBe('stopped')
})

test('an object that was given is left as it is', async () => {
  await using board = await openBoard('memory:')
  const services = { said: [] as string[], [Symbol.dispose]: () => services.said.push('disposed of') }
  const conductor = await startConductor({ board, persistence: 'memory:', flows: [flow], services })
  await (await board.post(flow, { text: 'one' })).wait()
  await conductor.stop()
  expect(services.said).toEqual(['one'])
})

test('a factory that fails, and services that are none, are reported before anything is claimed', async () => {
  await using board = await openBoard('memory:')
  const fails = async (): Promise<Services> => {
    throw new Error('no database')
  }
  const start = (services: unknown) =>
    startConductor({ board, persistence: 'memory:', flows: [flow], services: services as Services })
  await expect(start(fails)).rejects.toThrow('no database')
  await expect(start('text')).rejects.toThrow(InvalidArgument)
})

test('services end when the conductor cannot start after all', async () => {
  await using board = await openBoard('memory:')
  await using _first = await startConductor({
    board,
    persistence: 'memory:',
    flows: [flow],
    name: 'one',
    services: { said: [] },
  })
  const told: string[] = []
  const services = () => ({ said: told, [Symbol.dispose]: () => void told.push('ended') })
  const second = startConductor({ board, persistence: 'memory:', flows: [flow], name: 'one', services })
  await expect(second).rejects.toThrow('one')
  expect(told).toEqual(['ended'])
})

test('runFlow gives them, too, also to what is reverted', async () => {
  const fail = task('fail', {
    execute: () => {
      throw new Error('enough')
    },
  })
  const said: string[] = []
  const failing = linear('speech', input<{ text: string }>(), say, fail)
  await expect(runFlow(failing, { text: 'one' }, { services: { said } })).rejects.toThrow('enough')
  expect(said).toEqual(['one', 'not one'])
})
