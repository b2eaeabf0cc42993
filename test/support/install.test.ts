import { describe, expect, test } from 'vitest'
import { chooseWay, type Facts } from './install.ts'

const provision = { name: 'zookeeper', packages: ['zookeeper', 'default-jre-headless'] }
const nothing: Facts = {
  engineAnswers: false,
  installed: false,
  debian: true,
  root: true,
  mayInstall: true,
  mayBeMissing: false,
}

describe('a server for the tests comes', () => {
  test.each<[string, Partial<Facts>]>([
    ['container', { engineAnswers: true, installed: true }],
    ['container', { engineAnswers: true, mayBeMissing: true }],
    ['program', { installed: true, root: false, mayInstall: false }],
    ['program', { installed: true, mayBeMissing: true }],
    ['skip', { mayBeMissing: true }],
    ['install', {}],
  ])('by %s with %j', (way, facts) => {
    expect(chooseWay(provision, { ...nothing, ...facts })).toBe(way)
  })

  test.each<[Partial<Facts>]>([[{ root: false }], [{ mayInstall: false }], [{ debian: false }]])(
    'not at all with %j, and the error says what to do',
    (facts) => {
      const choose = () => chooseWay(provision, { ...nothing, ...facts })
      expect(choose).toThrow('apt-get install --no-install-recommends -y zookeeper default-jre-headless')
      expect(choose).toThrow('JOBBOARD_SKIP=zookeeper')
    },
  )
})
