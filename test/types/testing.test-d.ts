/** What the compiler asks of tests: services where a task needs them, and arguments as the task takes them. */
import { type Context, input, linear, task } from '../../src/index.ts'
import { fakeContext, runTask, workbench } from '../../src/testing/index.ts'

interface Bank {
  readonly balance: number
}

const greet = task('greet', { requires: ['name'], execute: ({ name }: { name: string }) => `Hello, ${name}!` })
const charge = task('charge', {
  requires: ['amount'],
  inject: { currency: 'EUR' },
  execute: ({ amount }: { amount: number; currency: string }, { services }: Context<{ bank: Bank }>) =>
    services.bank.balance - amount,
})
const pay = linear('pay', input<{ amount: number }>(), charge)

export async function tasks(bank: Bank) {
  const text: string = await runTask(greet, { name: 'Ada' })
  const left: number = await runTask(charge, { amount: 3 }, fakeContext({ services: { bank } }))
  await runTask(charge, { amount: 3, currency: 'CHF' }, fakeContext({ services: { bank } }))
  // @ts-expect-error: the argument is a text
  await runTask(greet, { name: 7 })
  // @ts-expect-error: the argument is missing
  await runTask(greet, {})
  // @ts-expect-error: the task needs a bank
  await runTask(charge, { amount: 3 })
  // @ts-expect-error: that is no bank
  await runTask(charge, { amount: 3 }, fakeContext({ services: { bank: 7 } }))
  return { text, left }
}

export async function benches(bank: Bank) {
  await workbench({ flows: [pay], services: { bank } })
  await workbench({ flows: [pay], services: () => ({ bank }) })
  // @ts-expect-error: the flow needs a bank
  await workbench({ flows: [pay] })
}
