/** The fields of KEDA's custom resources that the manifests use, as its definitions have them (keda.sh/v1alpha1). */
import type { HorizontalPodAutoscalerBehavior } from 'kubernetes-types/autoscaling/v2.js'
import type { ObjectMeta } from 'kubernetes-types/meta/v1.js'

export interface TriggerAuthentication {
  readonly apiVersion: 'keda.sh/v1alpha1'
  readonly kind: 'TriggerAuthentication'
  readonly metadata: ObjectMeta
  readonly spec: { readonly secretTargetRef: { parameter: string; name: string; key: string }[] }
}

export interface ScaledObject {
  readonly apiVersion: 'keda.sh/v1alpha1'
  readonly kind: 'ScaledObject'
  readonly metadata: ObjectMeta
  readonly spec: {
    readonly scaleTargetRef: { readonly name: string; readonly kind?: string; readonly apiVersion?: string }
    readonly pollingInterval?: number
    readonly cooldownPeriod?: number
    readonly minReplicaCount?: number
    readonly maxReplicaCount?: number
    readonly fallback?: { readonly failureThreshold: number; readonly replicas: number }
    readonly advanced?: {
      readonly horizontalPodAutoscalerConfig?: { readonly behavior?: HorizontalPodAutoscalerBehavior }
    }
    readonly triggers: {
      readonly type: 'postgresql'
      readonly authenticationRef: { readonly name: string }
      /** Of the trigger postgresql, whose values are all texts. */
      readonly metadata: { readonly query: string; readonly targetQueryValue: string }
    }[]
  }
}
