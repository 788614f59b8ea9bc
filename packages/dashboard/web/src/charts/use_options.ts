// The options of charts, kept in the address.

import { go, useLocation } from "../route";
import type { ChartSetting } from "./charts";
import { readOptions, writeOptions } from "./options";

/** @param usual The smoothing of an address that says nothing of it. Default: none. */
export function useChartOptions(usual = 0): ChartSetting {
  const { path, query } = useLocation();
  return {
    options: readOptions(query, usual),
    setOptions(options) {
      const text = writeOptions(query, options, usual);
      go(text ? `${path}?${text}` : path, "replace");
    },
  };
}
