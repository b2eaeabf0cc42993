import { describe, expect, test } from 'vitest'
import { Ledger } from '../../src/engine/ledger.ts'
import type { AtomDetail, FlowDetail } from '../../src/persistence/index.ts'

const AT = new Date(0)
const ATOM: AtomDetail = {
  ...({ name: 'a', kind: 'task', version: '1.0', state: 'PENDING', intention: 'EXECUTE' } as const),
  ...{ meta: {}, updatedAt: AT },
}

function ledgerWith(atom: AtomDetail): Ledger {
  const flow: FlowDetail = {
    ...({ uuid: 'u', name: 'f', version: '1.0', state: 'RUNNING', meta: {}, run: 1, claim: 'c' } as const),
    ...{ atoms: [atom], states: [], createdAt: AT, updatedAt: AT },
  }
  return new Ledger(flow, { recordsEvents: false })
}

describe('the ledger of a flow', () => {
  test('a record keeps the fields that only a newer release knows', () => {
    const ledger = ledgerWith({ ...ATOM, soon: { x: 1 } } as AtomDetail)
    expect(ledger.moveAtom('a', 'RUNNING')).toMatchObject({ state: 'RUNNING', soon: { x: 1 } })
    ledger.intend('a', 'REVERT')
    expect(ledger.atom('a')).toMatchObject({ intention: 'REVERT', soon: { x: 1 } })
    expect(ledger.takeTransition()?.atoms).toMatchObject([{ soon: { x: 1 } }])
  })

  test('a success loses its checkpoint, and a revert its result', () => {
    const checkpoint = { value: 1, at: AT }
    const ledger = ledgerWith({ ...ATOM, state: 'RUNNING', checkpoint })
    const done = ledger.moveAtom('a', 'SUCCESS', { result: undefined })
    expect(Object.keys(done)).not.toContain('checkpoint')
    expect(Object.keys(done)).toContain('result')
    ledger.moveAtom('a', 'REVERTING')
    expect(Object.keys(ledger.atom('a'))).toContain('result')
    expect(Object.keys(ledger.moveAtom('a', 'REVERTED'))).not.toContain('result')
  })
})
