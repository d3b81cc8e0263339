"""The stream manager: routes batches by their header and judges tuple trees."""
